# Tests of src/duration.sh. Prints what fails; the exit code is the number of failures.
. ./src/duration.sh
failures=0

expect() {
	got=$(duration "$1")
	if [ "$got" != "$2" ]; then
		echo "FAIL: duration $1 printed $got, expected $2"
		failures=$((failures + 1))
	fi
}

expect 0 0:00:00
expect 59 0:00:59
expect 75 0:01:15
expect 3599 0:59:59

[ "$failures" = 0 ] && echo "all tests passed"
exit "$failures"
