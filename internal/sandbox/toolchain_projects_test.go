package sandbox

var goProject = map[string]string{
	"go/go.mod": goMod,
	"go/go.sum": goSum,
	"go/main.go": `package main

import (
	"fmt"

	"github.com/pmezard/go-difflib/difflib"
)

func diff() string {
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: []string{"a\n", "b\n"}, B: []string{"a\n", "c\n"}, Context: 1})
	return text
}

func main() { fmt.Print(diff()) }
`,
	"go/main_test.go": `package main

import "testing"

func TestDiff(t *testing.T) {
	if diff() == "" {
		t.Error("empty")
	}
}
`,
	"go/web/web_test.go": `package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestServer(t *testing.T) {
	s := httptest.NewTLSServer(http.FileServer(http.Dir(t.TempDir())))
	defer s.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") }))
	defer plain.Close()
	for range 20 {
		r, err := plain.Client().Get(plain.URL)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	r, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if err := os.WriteFile(filepath.Join(t.TempDir(), "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
`,
	"go/repo/repo_test.go": `package repo

import (
	"os/exec"
	"testing"
)

func TestCommit(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "x"}, {"log", "--oneline"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
}
`,
	"go/race/race_test.go": `package race

import "testing"

func TestRace(t *testing.T) {
	n, done := 0, make(chan bool)
	go func() { n++; done <- true }()
	n++
	<-done
	if n > 2 {
		t.Error(n)
	}
}
`,
}

var nodeProject = map[string]string{
	"node/package.json":      packageJSON,
	"node/package-lock.json": "", // the stage's
	"node/main.ts": `const sizes: Map<string, number> = new Map([["a", 1]]);
console.log("typed", sizes.get("a"));
`,
	"node/main.test.mjs": `import test from 'node:test';
import assert from 'node:assert';
import http from 'node:http';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import ms from 'ms';

test('dependency', () => assert.equal(ms('1s'), 1000));

test('server', async () => {
  const server = http.createServer((request, response) => response.end('hello ' + request.url));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const response = await fetch('http://127.0.0.1:' + server.address().port + '/x');
  assert.equal(await response.text(), 'hello /x');
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('by name', async () => {
  const server = http.createServer((request, response) => response.end('hello'));
  await new Promise((resolve) => server.listen(0, 'localhost', resolve));
  const response = await fetch('http://localhost:' + server.address().port);
  assert.equal(await response.text(), 'hello');
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('child', () => assert.equal(spawnSync('sh', ['-c', 'echo child']).stdout.toString(), 'child\n'));

test('temporary file', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'x-')), 'f');
  writeFileSync(file, 'x');
  assert.equal(readFileSync(file, 'utf8'), 'x');
});

test('thread', async () => {
  const worker = new Worker('require("node:worker_threads").parentPort.postMessage(1)', { eval: true });
  assert.equal(await new Promise((resolve) => worker.once('message', resolve)), 1);
});
`,
}

var pythonProject = map[string]string{
	"python/test_project.py": `import http.server
import socket
import sqlite3
import subprocess
import tempfile
import threading
import unittest
import urllib.request


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


class Project(unittest.TestCase):
    def test_server(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open("http://127.0.0.1:%d/test_project.py" % server.server_port) as answer:
                self.assertIn(b"test_server", answer.read())
            server.shutdown()

    def test_socket_pair(self):
        a, b = socket.socketpair()
        a.send(b"x")
        self.assertEqual(b.recv(1), b"x")
        a.close(), b.close()

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            server = socket.socket(socket.AF_UNIX)
            server.bind(folder + "/s")
            server.listen()
            client = socket.socket(socket.AF_UNIX)
            client.connect(folder + "/s")
            client.close(), server.close()

    def test_child_and_database(self):
        self.assertEqual(subprocess.check_output(["sh", "-c", "echo child"]), b"child\n")
        with tempfile.NamedTemporaryFile() as file:
            connection = sqlite3.connect(file.name)
            connection.execute("create table t (a)")
            connection.close()


if __name__ == "__main__":
    unittest.main()
`,
	"python/test_processes.py": `import multiprocessing
import multiprocessing.shared_memory
import unittest


def square(n):
    return n * n


def put(queue, lock, value):
    with lock:
        value.value += 1
    queue.put(value.value)


class Processes(unittest.TestCase):
    def test_pool(self):
        with multiprocessing.Pool(2) as pool:
            self.assertEqual(pool.map(square, range(4)), [0, 1, 4, 9])

    def test_queue_and_lock(self):
        queue, lock, value = multiprocessing.Queue(), multiprocessing.Lock(), multiprocessing.Value("i", 0)
        children = [multiprocessing.Process(target=put, args=(queue, lock, value)) for _ in range(3)]
        for child in children:
            child.start()
        self.assertEqual(sorted(queue.get(timeout=20) for _ in children)[-1], 3)
        for child in children:
            child.join()

    def test_spawn(self):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            self.assertEqual(pool.apply(square, (3,)), 9)

    def test_shared_memory(self):
        memory = multiprocessing.shared_memory.SharedMemory(create=True, size=1000)
        memory.buf[0] = 1
        memory.close()
        memory.unlink()

    def test_manager(self):
        with multiprocessing.Manager() as manager:
            shared = manager.dict()
            child = multiprocessing.Process(target=shared.update, args=({"a": 1},))
            child.start()
            child.join()
            self.assertEqual(shared["a"], 1)


if __name__ == "__main__":
    unittest.main()
`,
}

var phpProject = map[string]string{
	"php/index.php": "<?php\necho 'hello ', $_SERVER['REQUEST_URI'], \"\\n\";\n",
	"php/server.php": `<?php
$free = stream_socket_server('tcp://127.0.0.1:0');
$port = (int) explode(':', stream_socket_get_name($free, false))[1];
fclose($free);
$server = proc_open([PHP_BINARY, '-S', "127.0.0.1:$port", 'index.php'], [1 => ['file', '/dev/null', 'w'], 2 => ['file', '/dev/null', 'w']], $pipes);
for ($i = 0; $i < 200 && !($c = @fsockopen('127.0.0.1', $port)); $i++) usleep(50000);
fclose($c);
$curl = curl_init("http://127.0.0.1:$port/path");
curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);
echo curl_exec($curl), file_get_contents("http://127.0.0.1:$port/other");
proc_terminate($server);
proc_close($server);
`,
	"php/session.php": `<?php
session_start();
$_SESSION['a'] = 1;
session_write_close();
session_start();
echo 'session ', $_SESSION['a'], "\n";
`,
	"php/database.php": `<?php
$password = getenv('DB_PASSWORD');
$pdo = new PDO("mysql:host=127.0.0.1;port={$argv[1]};dbname=app_test", 'app', $password, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$pdo->exec('CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20))');
$pdo->exec("INSERT INTO t (name) VALUES ('x')");
$n = $pdo->query('SELECT COUNT(*) FROM t')->fetchColumn();
$pdo->exec('DROP TABLE t');
$m = (new mysqli('127.0.0.1', 'app', $password, 'app_test', (int) $argv[1]))->query('SELECT 6 * 7')->fetch_row()[0];
echo "PDO $n, mysqli $m\n";
`,
	"php/composer.json":       `{"name": "own/project", "repositories": [{"type": "path", "url": "thing"}, {"packagist": false}], "require": {"own/thing": "*"}, "minimum-stability": "dev"}`,
	"php/thing/composer.json": `{"name": "own/thing", "version": "1.0.0", "autoload": {"psr-4": {"Own\\": "src"}}}`,
	"php/thing/src/Thing.php": "<?php\nnamespace Own;\nclass Thing { const NAME = 'thing'; }\n",
}

var cProject = map[string]string{
	"c/Makefile": "greet: greet.o main.o\n\t$(CC) -o $@ $^\n%.o: %.c\n\t$(CC) -c -o $@ $<\nclean:\n\trm -f greet *.o\n",
	"c/greet.c":  "#include <stdio.h>\nvoid greet(void) { puts(\"hello from c\"); }\n",
	"c/main.c":   "void greet(void);\nint main(void) { greet(); return 0; }\n",
	"c/over.c": `#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
	char *p = malloc(10);
	if (argc < 2) p[10 + argc] = 1;
	free(p);
	puts("fine");
	return 0;
}
`,
}

var javaProject = map[string]string{
	"java/Main.java": `import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.stream.*;

public class Main {
	public static void main(String[] args) throws Exception {
		Path file = Files.createTempFile("x", ".txt");
		Files.writeString(file, "text");
		long size = Files.size(file);
		Files.delete(file);
		int got;
		try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
			Thread client = new Thread(() -> {
				try (Socket s = new Socket(server.getInetAddress(), server.getLocalPort())) {
					s.getOutputStream().write(7);
				} catch (IOException e) {
					throw new UncheckedIOException(e);
				}
			});
			client.start();
			try (Socket s = server.accept()) {
				got = s.getInputStream().read();
			}
			client.join();
		}
		long sum = LongStream.range(0, 1_000_000).parallel().sum();
		System.out.println("file " + size + ", server " + got + ", sum " + sum);
	}
}
`,
}
