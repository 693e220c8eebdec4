#!/bin/sh
# The small git of the sandbox. The worktree has no repository; where git would find none between the current folder and
# the worktree's top, it is shown the history the work began with, which can be read and not changed. Everything else
# goes to git untouched: a test that makes a repository of its own finds it. Only builtins on the way: a fork costs as
# much as git itself.
git=@GIT@
history=@HISTORY@
top=@TOP@

# What is given before the subcommand.
dir=$PWD
word=
skip=
for argument; do
  case $skip in
    C)
      case $argument in
        /*) dir=$argument ;;
        *) dir=$dir/$argument ;;
      esac
      skip=
      continue
      ;;
    value)
      skip=
      continue
      ;;
  esac
  case $argument in
    -C) skip=C ;;
    -c | --exec-path | --namespace | --super-prefix | --config-env) skip=value ;;
    --git-dir | --git-dir=* | --work-tree | --work-tree=* | --bare) exec "$git" "$@" ;;
    -*) ;;
    *)
      word=$argument
      break
      ;;
  esac
done
[ -z "${GIT_DIR-}" ] || exec "$git" "$@"
case $word in
  '' | init | clone | config | version | help | ls-remote) exec "$git" "$@" ;;
esac

# A path with links or dots in it is made plain.
case $dir in
  "$PWD") ;;
  *) dir=$(CDPATH= cd -P -- "$dir" 2>/dev/null && printf '%s/' "$PWD") || exec "$git" "$@"
     dir=${dir%/} ;;
esac
at=$dir
while :; do
  case $at in
    "$top" | "$top"/*) ;;
    *) exec "$git" "$@" ;; # outside of the worktree
  esac
  if [ -e "$at/.git" ] || [ -f "$at/HEAD" ] && [ -d "$at/objects" ] && [ -d "$at/refs" ]; then
    exec "$git" "$@" # a repository of somebody's own
  fi
  [ "$at" != "$top" ] || break
  at=${at%/*}
done

export GIT_DIR="$history" GIT_WORK_TREE="$top" GIT_OPTIONAL_LOCKS=0 GIT_CONFIG_NOSYSTEM=1
case $word in
  add | stage)
    # Harmless, and many do it by habit: the change is taken from the files.
    echo 'issuesmith: nothing to add here, the change is taken from the files' >&2
    exit 0
    ;;
  commit | push | pull | fetch | merge | rebase | cherry-pick | revert | stash | tag | am | reset | switch | branch | notes | worktree | gc | repack | update-ref | remote | submodule | bisect | filter-branch | replace | prune | update-index | read-tree | write-tree | commit-tree | hash-object | symbolic-ref)
    reads=
    case $word in
      branch | tag | remote | notes | stash | submodule)
        reads=yes
        after=
        for argument; do
          [ -z "$after" ] || case $argument in
            list | show | status | -a | -r | -v | -vv | -l | --list | --show-current | --all | --contains | --merged | --no-merged | --points-at | --format=* | --sort=* | HEAD) ;;
            *) reads= ;;
          esac
          [ "$argument" != "$word" ] || after=yes
        done
        ;;
      hash-object | symbolic-ref) reads=yes ;; # what they write is refused by the folder
    esac
    if [ -z "$reads" ]; then
      echo "issuesmith: git $word is not possible here: the history can only be read. Change the files; the change is taken from them. \`git restore FILE\` brings a file back." >&2
      exit 1
    fi
    ;;
  checkout | restore | rm | mv | apply | clean | ls-files)
    # These want to write the index, which stays as it is: they get a copy that lasts as long as they do.
    index=${TMPDIR:-/tmp}/.issuesmith-index.$$
    if cp "$history/index" "$index"; then
      chmod u+w "$index"
      GIT_INDEX_FILE=$index "$git" "$@"
      code=$?
      rm -f "$index" "$index.lock"
      exit $code
    fi
    ;;
esac
exec "$git" "$@"
