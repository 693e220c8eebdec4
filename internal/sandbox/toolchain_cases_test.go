package sandbox

import "strings"

// A toolchainCase is a small project and what is done with it.
type toolchainCase struct {
	name   string
	needs  []string          // programs; without them the case is skipped
	files  map[string]string // of the worktree
	dir    string            // the folder the script runs in
	script string            // @PORT@ is MariaDB's
	exit   int
	want   string // in the output, where numbers are N
}

// Each script prints what it found, so that the outputs of two runs can be compared.
var toolchainCases = []toolchainCase{
	{
		name: "go build and vet", needs: []string{"go"}, dir: "go", files: goProject,
		script: "go vet ./... && go build -o project . && ./project", want: "-b\n+c\n",
	},
	{name: "go test with a dependency", needs: []string{"go"}, dir: "go", files: goProject, script: "go test -count=1 .", want: "ok  \texample.com/project"},
	{name: "go httptest", needs: []string{"go"}, dir: "go", files: goProject, script: "go test -count=1 -v ./web", want: "--- PASS: TestServer"},
	{name: "go test that makes a repository", needs: []string{"go", "git"}, dir: "go", files: goProject, script: "go test -count=1 -v ./repo", want: "--- PASS: TestCommit"},
	{name: "go test -race", needs: []string{"go", "gcc"}, dir: "go", files: goProject, script: "go test -race -count=1 ./race 2>&1 | grep -E 'RACE|^(FAIL|---)'; exit ${PIPESTATUS[0]}", exit: 1, want: "WARNING: DATA RACE"},
	{
		name: "go.sum is verified through the cache", needs: []string{"go"}, dir: "tampered", exit: 1, want: "SECURITY ERROR",
		files:  map[string]string{"tampered/go.mod": goMod, "tampered/go.sum": strings.Replace(goSum, "h1:4DBw", "h1:AAAA", 1), "tampered/main.go": goProject["go/main.go"]},
		script: "GOMODCACHE=$TMPDIR/other go mod download; code=$?; chmod -R u+w $TMPDIR/other; rm -rf $TMPDIR/other; exit $code",
	},
	{name: "npm ci --offline", needs: []string{"node", "npm"}, dir: "node", files: nodeProject, script: "npm ci --offline --loglevel=error >/dev/null && ls node_modules", want: "ms\ntypescript\n"},
	{name: "node --test with a server", needs: []string{"node", "npm"}, dir: "node", files: nodeProject, script: "node --test --test-reporter=tap", want: "# pass N"},
	{name: "TypeScript", needs: []string{"node", "npm"}, dir: "node", files: nodeProject, script: "npx --offline tsc --outDir out --lib es2022,dom --target es2022 main.ts && node out/main.js", want: "typed N\n"},
	{name: "python3 -m unittest", needs: []string{"python3"}, dir: "python", files: pythonProject, script: "python3 -m unittest -v test_project", want: "Ran N tests in Ns\n\nOK\n"},
	{name: "Python multiprocessing", needs: []string{"python3"}, dir: "python", files: pythonProject, script: "python3 -m unittest -v test_processes", want: "OK\n"},
	{name: "php -l", needs: []string{"php"}, dir: "php", files: phpProject, script: "php -l index.php", want: "No syntax errors"},
	{name: "PHP's built-in server", needs: []string{"php"}, dir: "php", files: phpProject, script: "php server.php", want: "hello /path\n"},
	{name: "PHP's sessions", needs: []string{"php"}, dir: "php", files: phpProject, script: "php session.php", want: "session N\n"},
	{name: "PHP on MariaDB", needs: []string{"php"}, dir: "php", files: phpProject, script: "php database.php @PORT@", want: "PDO N, mysqli N\n"},
	{name: "Composer", needs: []string{"php", "composer"}, dir: "php", files: phpProject, script: "composer install --no-progress --no-ansi -q && php -r 'require \"vendor/autoload.php\"; echo Own\\Thing::NAME, \"\\n\";'", want: "thing\n"},
	{
		name: "repository in a temporary folder", needs: []string{"git"},
		script: `cd "$(mktemp -d)" && git init -q && echo a > f && git add f && git commit -qm first && git log --format=%s && git status --short --branch`,
		want:   "first\n## ",
	},
	{
		name: "git log, diff and status", needs: []string{"git"}, dir: "", files: map[string]string{"README": "two\n", "code/a.txt": "a\n", "new": ""},
		script: "git log --format=%s && git diff README && git status --short README code new", want: "The beginning\n",
	},
	{
		name: "make and gcc", needs: []string{"make", "gcc"}, dir: "c", files: cProject,
		script: "make -s -j2 && ./greet && make -s clean && ls", want: "hello from c\n",
	},
	{name: "AddressSanitizer", needs: []string{"gcc"}, dir: "c", files: cProject, script: "gcc -g -fsanitize=address over.c -o over && ./over 2>&1 | grep -o 'heap-buffer-overflow' | head -n 1; ./over 1", want: "heap-buffer-overflow\nfine\n"},
	{name: "pipeline", script: `set -o pipefail; seq 100000 | sort -rn | awk '{s+=$1} END {print "sum", s}' | tee sum | wc -l; cat sum; diff <(seq 3) <(seq 3) && echo same`, want: "same\n"},
	{
		name: "children", script: `for i in 1 2 3 4; do (sleep 0.1; exit $i) & done; for p in $(jobs -p); do wait $p; echo "child $?"; done; timeout 0.2 sleep 5; echo "timeout $?"; (trap 'echo got it; exit' USR1; sleep 5 & wait) & sleep 0.2; kill -USR1 $!; wait; echo end`,
		want: "got it\nend\n",
	},
	{name: "temporary files", script: `f=$(mktemp) && echo x > "$f" && cat "$f" && rm "$f"; cat <<< here; mkfifo $TMPDIR/p && (echo through > $TMPDIR/p &) && cat $TMPDIR/p && rm $TMPDIR/p`, want: "through\n"},
	{name: "JVM", needs: []string{"java", "javac"}, dir: "java", files: javaProject, script: "javac Main.java && java Main", want: "file N, server N, sum N\n"},
}
