//go:build !unix

package main

import "io/fs"

const noFollow = 0

// ownerOf does not know: files have access lists here, and their folder's
// guards them.
func ownerOf(fs.FileInfo) (uid int, known bool) { return 0, false }

// syncFolder does nothing: a folder cannot be synced here.
func syncFolder(string) error { return nil }
