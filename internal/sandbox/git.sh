#!/bin/sh
# The git of the sandbox's commands. The worktree has no repository; where git would find none between the current folder
# and the top of the worktree, it is shown the history the work began with, which can be read and not changed. Everywhere
# else, and wherever a repository is named or was made, git gets its arguments as they are.
#
# On the usual way there are only builtins: a fork costs as much as git itself.
small_git=@GIT@
small_history=@HISTORY@
small_top=@TOP@

plain() { exec "$small_git" "$@"; }

note() { printf 'issuesmith: %s\n' "$*" >&2; }

# refuse ends a command that would lead to something else than it says.
refuse() {
	note "git $small_word is not possible: the history here is read-only. Just change the files, the change is taken from them.$1"
	exit 1
}

[ -z "${GIT_DIR+set}" ] || plain "$@"

# What stands before the subcommand (git(1)).
small_word= small_count=0 small_dir= small_before=
for small_arg; do
	small_count=$((small_count + 1))
	case $small_before:$small_arg in
		folder:/*) small_dir=$small_arg small_before= ;;
		folder:?*) small_dir=${small_dir:-.}/$small_arg small_before= ;;
		folder: | other:*) small_before= ;;
		:-C) small_before=folder ;;
		:-c | :--namespace | :--work-tree | :--config-env | :--attr-source | :--super-prefix) small_before=other ;;
		:--git-dir | :--git-dir=* | :--bare) plain "$@" ;;
		:-*) ;;
		*)
			small_word=$small_arg
			break
			;;
	esac
done
case $small_word in
	'' | help | version | init | init-db | clone) plain "$@" ;;
esac

# Where git would begin to look. Names with links or dots in them are made plain by going there.
cd -P . 2>/dev/null || plain "$@"
small_at=$PWD
if [ -n "$small_dir" ]; then
	cd -P "$small_dir" 2>/dev/null || plain "$@"
	small_there=$PWD
	cd -P "$small_at" || exit 128
	small_at=$small_there
fi
case $small_at in
	"$small_top" | "$small_top"/*) ;;
	*) plain "$@" ;;
esac
while :; do
	if [ -e "$small_at/.git" ] ||
		{ [ -f "$small_at/HEAD" ] && [ -d "$small_at/objects" ] && [ -d "$small_at/refs" ]; }; then
		plain "$@"
	fi
	[ "$small_at" != "$small_top" ] || break
	small_at=${small_at%/*}
done

export GIT_DIR="$small_history" GIT_WORK_TREE="${GIT_WORK_TREE-$small_top}"
export GIT_OPTIONAL_LOCKS=0 GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1
[ -z "${GIT_INDEX_FILE+set}" ] || plain "$@" # an index of somebody's own

# look reads what stands after the subcommand: the first operand, whether there are more or a path after "--", whether
# something is listed, and options that say more.
look() {
	shift "$small_count"
	small_first= small_paths= small_lists= small_moves= small_hard= small_cached= small_refresh=
	while [ $# -gt 0 ]; do
		case $1 in
			--)
				[ $# -eq 1 ] || small_paths=yes
				break
				;;
			-l | --list | --list=* | -n[0-9]* | --contains* | --no-contains* | --merged* | --no-merged* | --points-at* | --format* | --sort*)
				small_lists=yes
				;;
			-b | -B | -t | -d | --track | --track=* | --orphan | --detach | --soft | --keep | --merge) small_moves=yes ;;
			--hard) small_hard=yes ;;
			--cached) small_cached=yes ;;
			--refresh | --really-refresh) small_refresh=yes ;;
			--pathspec-from-file | --pathspec-from-file=*) small_paths=yes ;;
			-?*) ;;
			*)
				[ -z "$small_first" ] || small_paths=yes
				small_first=${small_first:-$1}
				;;
		esac
		shift
	done
}

# moves reports whether the commit that is checked out would be another one: files would be changed before git finds that it
# cannot write that down.
moves() {
	[ -z "$small_moves" ] || return 0
	[ -z "$small_paths" ] || return 1
	case $small_first in
		'' | HEAD | @) return 1 ;;
	esac
	"$small_git" rev-parse --quiet --verify "$small_first^{commit}" >/dev/null 2>&1
}

# scratch runs a command that wants to write the index, and objects for it, on copies that last as long as it does. The index
# stays what the work began with, so that git status and git diff show all of the change. Some commands take a file for changed
# whose times are not those in the index, so the copy gets them first.
scratch() {
	small_scratch=${TMPDIR:-/tmp}/.issuesmith-git.$$
	mkdir -p "$small_scratch/objects" && cp "$small_history/index" "$small_scratch/index" || exit 128
	export GIT_INDEX_FILE="$small_scratch/index"
	export GIT_OBJECT_DIRECTORY="$small_scratch/objects" GIT_ALTERNATE_OBJECT_DIRECTORIES="$small_history/objects"
	"$small_git" update-index -q --refresh >/dev/null
	"$small_git" "$@"
	small_code=$?
	rm -rf "$small_scratch"
	exit "$small_code"
}

small_reverse='`git diff >"$TMPDIR/my.patch" && git apply -R "$TMPDIR/my.patch"` takes changes away, `git apply "$TMPDIR/my.patch"` brings them back.'

case $small_word in
	# These would only mark what is to be committed. Everything is, so there is nothing that could have failed, and scripts
	# and habits that begin with it go on.
	add | stage)
		note "nothing to stage: the history here is read-only, the change is taken from the files as they are (see git status and git diff)"
		exit 0
		;;
	reset)
		look "$@"
		if [ -n "$small_hard" ] && [ -z "$small_moves$small_paths" ] && ! moves; then
			note 'tracked files are brought back as `git restore :/` does; new files stay'
			scratch restore --worktree -- :/
		fi
		[ -z "$small_hard" ] && ! moves || refuse ' `git restore FILE` brings a file back.'
		note "nothing is staged: the change is taken from the files as they are"
		exit 0
		;;

	# These change files, and may.
	checkout)
		look "$@"
		! moves || refuse ' `git restore --source=COMMIT FILE` brings a file back, `git show COMMIT:FILE` prints it.'
		scratch "$@"
		;;
	rm | apply)
		look "$@"
		[ -z "$small_cached" ] || refuse
		scratch "$@"
		;;
	restore | mv) scratch "$@" ;;
	update-index)
		look "$@"
		[ -n "$small_refresh" ] && [ -z "$small_first$small_paths" ] || refuse
		scratch "$@"
		;;
	# Scripts refresh the index, which is not kept, and then ask these, which do not look into files by themselves.
	diff-index | diff-files) scratch "$@" ;;

	# These would record something, or move files by what is recorded. A success would be a lie that the next command
	# builds on, and some of them change files before they fail. What they only show is shown.
	stash)
		look "$@"
		case $small_first in
			list | show) ;;
			*) refuse " $small_reverse" ;;
		esac
		;;
	branch | tag)
		look "$@"
		[ -z "$small_first" ] || [ -n "$small_lists" ] || refuse
		;;
	remote | worktree | notes | submodule | sparse-checkout | bisect)
		look "$@"
		case "$small_word $small_first" in
			*' list' | 'remote ' | 'remote show' | 'remote get-url' | 'notes ' | 'notes show') ;;
			'submodule ' | 'submodule status' | 'submodule summary' | 'submodule foreach') ;;
			worktree*) refuse ' `git archive COMMIT | tar -x -C FOLDER` writes a commit out.' ;;
			*) refuse ;;
		esac
		;;
	fetch | pull | push) refuse ' There is no remote.' ;;
	revert) refuse ' `git show COMMIT | git apply -R` takes a commit back.' ;;
	cherry-pick) refuse ' `git show COMMIT | git apply` brings a commit in.' ;;
	switch | commit | merge | rebase | am | replace | filter-branch | filter-repo) refuse ;;
	gc | repack | prune | maintenance | read-tree | write-tree | commit-tree | update-ref | fast-import) refuse ;;
esac
plain "$@"
