# duration SECONDS prints h:mm:ss.
duration() {
	hours=$(($1 / 3600))
	minutes=$(($1 / 60))
	seconds=$(($1 % 60))
	printf '%d:%02d:%02d\n' "$hours" "$minutes" "$seconds"
}
