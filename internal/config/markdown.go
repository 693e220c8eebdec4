package config

import (
	"fmt"
	"strings"
)

// MarkdownTable is the README's table of settings, and below it that of the keys
// which only the repository file has.
func MarkdownTable() string {
	var b strings.Builder
	b.WriteString("| input | default | allowed | what it is |\n|---|---|---|---|\n")
	for _, s := range Settings() {
		if !s.FileOnly {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, cell(s.Default), cell(s.Range), cell(s.Help))
		}
	}
	b.WriteString("\nOnly in the repository file:\n\n| key | default | allowed | what it is |\n|---|---|---|---|\n")
	for _, s := range Settings() {
		if s.FileOnly {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, cell(s.Default), cell(s.Range), cell(s.Help))
		}
	}
	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
