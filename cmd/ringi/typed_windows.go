package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// dropTyped throws away what was typed and not read yet.
func dropTyped(f *os.File) error { return windows.FlushConsoleInputBuffer(windows.Handle(f.Fd())) }
