package redact

import (
	"strings"
	"testing"
)

// In the tables below what stands between « and » must be blanked, and nothing
// else. Made-up keys are put together here so that no scanner takes this file
// for a leak.
func fill(s string) string {
	return strings.NewReplacer(
		"$SK", "sk"+"-abcDEF0123456789abcDEF01", "$GH", "gh"+"p_0123456789abcdefABCDEF0123456789abcd",
		"$HEX", "0123456789abcdef0123456789abcdef01234567", "$B64", "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
		"$JWT", "ey"+"JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
	).Replace(s)
}

func TestShapes(t *testing.T) {
	t.Parallel()
	r := New()
	for _, c := range []string{
		// authorization
		"Authorization: Bearer «abcdefgh12345678»",
		"> authorization: token «$HEX»",
		"Authorization: Basic «$B64»",
		"Proxy-Authorization: Basic «$B64»",
		`{"Authorization": "Bearer «abc.def-123»"}`,
		`{\"Authorization\": \"Bearer «abc.def-123»\"}`,
		`curl -H 'Authorization: token «0123456789abcdef»' https://x`,
		"Authorization: «$HEX»",
		"header bearer «0123456789abcdef0123»",
		// key = value
		"DB_PASSWORD=«correcthorse»",
		"MYSQL_ROOT_PASSWORD: «correcthorse»",
		"export API_KEY=«abcd-1234-efgh»",
		"password=«hunter2hunter2»",
		"db.password = «s3cr3tvalue»",
		"--password=«hunter2x»",
		"password: «hunter2000»",
		"password: «Tr0ub4dor&3»",
		`"password": "«hunter2x»"`,
		`'password' => '«hunter2x»',`,
		`$config['password'] = '«hunter2x»';`,
		`{"client_secret":"«aB3dE6gH9»"}`,
		`{\"client_secret\":\"«aB3dE6gH9»\"}`,
		`"access_token": "«ya29.a0AfH6SMBx1»"`,
		"APP_KEY=«base64:Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MDEyMzQ1Njc=»",
		"aws_secret_access_key = «wJalrXUtnFEMI/K7MDENG/bPxRfiCYKEY»",
		"X-Api-Key: «0123456789abcdef»",
		"GET /x?access_token=«abcdef123456»&page=2",
		"url?page=2&api_key=«abcdef123456»&x=1 HTTP/1.1",
		"connect(password=«hunter2x», host=h)",
		`password="«!correct#horse»"`,
		"private_key: «MIIEvQIBADANBgkqhkiG9w0»",
		"Server=db;User=sa;Password=«Pass@w0rd1»;Encrypt=true",
		`secret := "«0123456789abcdef»"`,
		"token: `«0123456789abcdef»`",
		"passphrase=«open-sesame-42»",
		// addresses
		"https://user:«pass»@host/path",
		"fatal: unable to access 'https://x-access-token:«$HEX»@git.example.com/o/r.git/'",
		"https://«$HEX»@git.example.com/o/r.git",
		"postgres://app:«p@ss:w0rd»@db:5432/app?sslmode=disable",
		"mysql://root:«root»@127.0.0.1/test",
		"redis://:«hunter2»@cache:6379/0",
		"app:«hunter2»@tcp(db:3306)/app",
		"mongodb+srv://u:«p%40ss»@cluster.example.net",
		// keys of providers
		"key «$SK»",
		"OPENAI «$SK», next",
		"«sk" + "-ant-api03-abcDEF0123456789»",
		"«sk" + "-or-v1-0123456789abcdef0123456789abcdef»",
		"«AIza" + "SyA0123456789abcdefghijklmnopqrstuv»",
		"remote: «$GH»",
		"«github" + "_pat_11ABCDEFG0123456789_abcdefghijkl»",
		"«glpat" + "-0123456789abcdefGHIJ»",
		"«xoxb" + "-123456789012-abcdefABCDEF»",
		"aws «AKIA" + "IOSFODNN7EXAMPLE» id",
		"«hf_" + "abcdefghijklmnopqrstuvwXYZ0123456»",
		"«gsk_" + "abcdefghijklmnopqrstuvwXYZ0123456»",
		"«npm_" + "abcdefghijklmnopqrstuvwXYZ0123456789»",
		"«pypi-" + "AgEIcHlwaS5vcmcCJDAxMjM0NTY3»",
		"jwt «$JWT» end",
		"cookie: session=«$JWT»; path=/",
	} {
		checkShape(t, r, c)
	}
}

// Text is read by people: honest code, prose and logs must come through.
func TestShapesLeaveCodeAlone(t *testing.T) {
	t.Parallel()
	r := New()
	for _, c := range []string{
		"token := getToken()",
		"token = tokens[0]",
		"token := r.Header.Get(\"X-Token1234\")",
		"token = self.request.token2",
		"token = await fetchToken2(user)",
		"password: string",
		"password: string | null;",
		"password?: string2;",
		"password: Optional[str] = None",
		"password: SecretStr = Field(min_length=8)",
		"public function __construct(private string $password, private string $token) {}",
		"$password = $request->input('password');",
		"'password' => 'required|string|min:8',",
		"'password' => Hash::make('x'),",
		"'password' => env('DB_PASSWORD', ''),",
		"'password' => ['required', 'confirmed'],",
		`"token": null,`,
		`"password": true,`,
		`"password": "",`,
		`if token == "" {`,
		`if token == "abcd1234" {`,
		`if (password !== confirmPassword2) {`,
		`password != oldPassword1`,
		`password = newPassword`,
		`token = userToken2`,
		`secret: config.secret2,`,
		`secret: Config::SECRET_2,`,
		"DB_PASSWORD=${DB_PASSWORD2}",
		"DB_PASSWORD=$DB_PASSWORD2",
		"DB_PASSWORD={{ vault_password1 }}",
		"token: ${{ secrets.GITEA_TOKEN1 }}",
		"TOKEN=$(cat /run/secrets/token1)",
		"API_KEY=your-api-key-here1",
		"API_KEY=<your key 1>",
		"password=********",
		"password: ***",
		"MODEL_API_KEY: ***",
		"password: see issue #12345",
		"Password: forgotten? Ask somebody.",
		"The token: something else",
		"tokens: 12345678",
		"max_tokens=12345678",
		"prompt_token: 12345678",
		"token expires: 2024-01-01T10:00:00Z",
		"token: 2024-01-01",
		"password_reset_expires = 86400000",
		`<input type="password" name="password2" id="password2">`,
		`<label for="password">Password for account2</label>`,
		`"auth.password": "Passwort vergessen? 2x klicken"`,
		`key_file: secrets/token_v1.json`,
		`secret: tests/fixtures/token_v1.json`,
		`token="%s"`, `password=%(password1)s`,
		"type Token struct {",
		"func (t *Token) Secret() string { return t.secret }",
		"const tokenSecret = Symbol('token1234')",
		"use App\\Http\\Middleware\\VerifyCsrfToken;",
		"case token: return scanner.Token1()",
		"Authorization: Bearer ${TOKEN1234}",
		"Authorization: Bearer $TOKEN",
		`req.Header.Set("Authorization", "Bearer "+token)`,
		"Authorization: Bearer <token>",
		"authorization: AuthorizationService",
		"bearer authentication is required here",
		"commit 0123456789abcdef0123456789abcdef01234567",
		"index 0123456..89abcde 100644",
		"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"h1:Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=",
		"https://host/path?x=1", "https://user@host/x", "ssh://git@host:22/o/r.git", "git@host:o/r.git",
		"https://host:8080/a@b", "http://localhost:3000/@vite/client",
		"postgres://user:${PASSWORD}@db/app", "postgres://user:$PASSWORD@db/app", "postgres://user:<password>@db", "mysql://user:***@db",
		".sk-fading-circle-animation-dot { color: red }",
		"task-sk-learn disk-usage-report-of-all-the-hosts",
		"npm_config_registry npm_lifecycle_event",
		"hf_hub_download gsk_render_node_new",
		"550e8400-e29b-41d4-a716-446655440000",
		"-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----",
		`strings.Contains(s, "-----BEGIN PRIVATE KEY-----")`,
		"const begin = \"-----BEGIN PRIVATE KEY-----\"\nconst end = \"-----END PRIVATE KEY-----\"",
		`"-----BEGIN PRIVATE KEY-----\\n" + key + "\\n-----END PRIVATE KEY-----"`,
		"eyJ is how a JWT starts", "eyJhbGciOiJIUzI1NiJ9",
		"AKIASHORT", "ghp_short", "xoxo-hugs-and-kisses",
		"[redacted]", "password=[redacted]", "https://u:[redacted]@h",
	} {
		checkShape(t, r, c)
	}
}

func checkShape(t *testing.T, r *Redactor, marked string) {
	t.Helper()
	marked = fill(marked)
	var want strings.Builder
	for i, part := range strings.Split(marked, "«") {
		if i > 0 {
			_, part, _ = strings.Cut(part, "»")
			want.WriteString(Mark)
		}
		want.WriteString(part)
	}
	in := strings.NewReplacer("«", "", "»", "").Replace(marked)
	got := r.Text(in)
	if got != want.String() {
		t.Errorf("Text(%s)\n gives %s\n want  %s", in, got, want.String())
	}
	if again := r.Text(got); again != got {
		t.Errorf("Text(%s) is not idempotent:\n once  %s\n twice %s", in, got, again)
	}
	// A line of a diff, and between other lines, is judged the same way.
	if diff := r.Text("@@ -1 +1 @@\n+" + in + "\n ok"); diff != "@@ -1 +1 @@\n+"+want.String()+"\n ok" {
		t.Errorf("in a diff: %s", diff)
	}
}

func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	const begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
	l1 := "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun"
	l2 := "VTLw7onLRnrq0/IzW7yWR7QkrmBL7jTKEn5u+qKhbwKfBstIs+bMY2Zkp18gnTxK"
	l3 := "LxoS2tFczGkPLPgizskuemMghRniWaoLcyehkd3qqGElvW/Ag=="
	r := New()
	for name, c := range map[string][2]string{
		"file":         {begin + "\n" + l1 + "\n" + l2 + "\n" + l3 + "\n" + end + "\n", begin + Mark + "\n" + end + "\n"},
		"crlf":         {begin + "\r\n" + l1 + "\r\n" + l3 + "\r\n" + end, begin + Mark + "\n" + end},
		"short end":    {begin + "\n" + l1 + "\nAg==\n" + end, begin + Mark + "\n" + end},
		"no end":       {begin + "\n" + l1 + "\n" + l2, begin + Mark},
		"cut":          {begin + "\n" + l1 + "\n" + l2[:9] + "\n", begin + Mark + "\n"},
		"text behind":  {begin + "\n" + l1 + "\nand so on, he said", begin + Mark + "\nand so on, he said"},
		"diff":         {"+" + begin + "\n+" + l1 + "\n+" + l2 + "\n+" + end, "+" + begin + Mark + "\n+" + end},
		"removed":      {"-" + begin + "\n-" + l1 + "\n-" + l2 + "\n-" + end, "-" + begin + Mark + "\n-" + end},
		"quoted":       {"> " + begin + "\n> " + l1 + "\n> " + end, "> " + begin + Mark + "\n> " + end},
		"json":         {`{"k":"` + begin + `\n` + l1 + `\n` + l2 + `\n` + end + `\n"}`, `{"k":"` + begin + Mark + `\n` + end + `\n"}`},
		"yaml":         {"k: |\n  " + begin + "\n  " + l1 + "\n  " + end + "\nx: 1", "k: |\n  " + begin + Mark + "\n  " + end + "\nx: 1"},
		"one line":     {begin + " " + l1 + " " + l2 + " " + end, begin + Mark + " " + end},
		"go strings":   {`"` + begin + `\n" + "` + l1 + `\n" + "` + end + `"`, `"` + begin + Mark + `\n" + "` + end + `"`},
		"encrypted":    {begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB\n\n" + l1 + "\n" + end, begin + Mark + "\n" + end},
		"two":          {begin + "\n" + l1 + "\n" + end + "\n" + begin + "\n" + l2 + "\n" + end, begin + Mark + "\n" + end + "\n" + begin + Mark + "\n" + end},
		"two, no ends": {begin + "\n" + l1 + "\n" + begin + "\n" + l2, begin + Mark + "\n" + begin + Mark},
	} {
		got := r.Text(c[0])
		if got != c[1] {
			t.Errorf("%s:\n got  %q\n want %q", name, got, c[1])
		}
		if again := r.Text(got); again != got {
			t.Errorf("%s: not idempotent: %q", name, again)
		}
	}
}

func TestPersonal(t *testing.T) {
	t.Parallel()
	r := New()
	const in = "mail jane.doe+x@mail.example.org from 192.168.1.17"
	if got := r.Text(in); got != in {
		t.Errorf("off: %q", got)
	}
	r.Personal(true)
	for _, c := range []string{
		"mail «jane.doe+x@mail.example.org».", "<«a@b.de»>", "git@example.org:o/r.git", "user@host",
		"from «192.168.1.17».", "«10.0.0.1»:8080", "inet:«10.0.0.1»", "http://«10.0.0.1»/x", "«10.0.0.1»/24", "[«10.0.0.1»]",
		"127.0.0.1:80", "0.0.0.0", "::1", "::", "[::1]:80", "v1.2.3.4", "1.2.3.4.5", "1.2.3", "256.1.1.1", "x1.2.3.4", "1.2.3.4-rc1"[:5],
		"«2001:db8::1»", "[«2001:db8::1»]:443", "«fe80::1»%eth0", "12:34:56", "std::vector", "a::b", "Foo::Bar", "ab:cd:ef:01:02:03",
	} {
		checkShape(t, r, c)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"password=hunter2x token: \"abc12345\"", "https://u:p@h", "Authorization: Bearer abcdef123456", "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEeP",
		"hunter2-canary", "hunter2-\x1b[0mcanary", "aHVudGVyMi1jYW5hcnk=", "]abc12345", "a@b.cd 10.0.0.1 2001:db8::1", "tok\u200ben=abcdef12",
		"app:x@tcp(h)", fill("$SK $GH $JWT"), "first line of two\nsecond line of two", "eyJaaaaaaaaaa.bbbb.cccc",
	} {
		f.Add(s, true)
		f.Add(s+s, false)
	}
	loud, quiet := fuzzRedactor(), fuzzRedactor()
	loud.Personal(true)
	f.Fuzz(func(t *testing.T, s string, personal bool) {
		r := quiet
		if personal {
			r = loud
		}
		checkStable(t, r, s)
		for _, v := range []string{"hunter2-canary", "]abc12345", "abcdefghij", "second line of two"} {
			if strings.Contains(r.Text(s), v) {
				t.Fatalf("%q left of %q", v, s)
			}
		}
	})
}

func fuzzRedactor() *Redactor {
	return New("hunter2-canary", "]abc12345", "abcdefghij", "ghijklmnop", "first line of two\nsecond line of two", "x[red=ä/%\"y")
}
