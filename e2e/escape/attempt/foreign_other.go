//go:build !amd64

package main

var foreignPrograms map[string][]byte

func foreignX32([]string) verdict { return untested("only amd64 has x32") }
