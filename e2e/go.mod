module issuesmith/e2e

go 1.26.0

toolchain go1.26.11

require (
	code.gitea.io/sdk/gitea v0.25.1
	golang.org/x/sys v0.50.0
)

require (
	github.com/42wim/httpsig v1.2.4 // indirect
	github.com/davidmz/go-pageant v1.0.2 // indirect
	github.com/go-fed/httpsig v1.1.0 // indirect
	github.com/hashicorp/go-version v1.9.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
)
