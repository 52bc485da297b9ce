package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The same files make the same bytes, whatever their own modes and times are.
func TestArchivesAreReproducible(t *testing.T) {
	at := time.Unix(1_700_000_000, 0).UTC()
	for _, ext := range []string{".zip", ".tar.gz"} {
		var made [2][]byte
		for i, mode := range []os.FileMode{0o600, 0o777} {
			dir := t.TempDir()
			var files []string
			for _, name := range []string{"ringi", "LICENSE"} {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte("text of "+name), mode); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, at, at.Add(time.Duration(i)*time.Hour)); err != nil {
					t.Fatal(err)
				}
				files = append(files, path)
			}
			out := filepath.Join(dir, "out"+ext)
			if err := write(out, "ringi_v1", at, files); err != nil {
				t.Fatal(err)
			}
			var err error
			if made[i], err = os.ReadFile(out); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(made[0], made[1]) {
			t.Errorf("%s: the same files make other bytes", ext)
		}
		want := "ringi_v1/ringi -rwxr-xr-x 1700000000 text of ringi\nringi_v1/LICENSE -rw-r--r-- 1700000000 text of LICENSE\n"
		if got := contents(t, ext, made[0]); got != want {
			t.Errorf("%s holds:\n%swant:\n%s", ext, got, want)
		}
	}
}

func TestArchiveLeavesNothingHalf(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.tar.gz")
	if err := write(out, "x", time.Unix(0, 0), []string{"/missing"}); err == nil {
		t.Error("a missing file is no error")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("half an archive is left")
	}
}

func contents(t *testing.T, ext string, b []byte) string {
	t.Helper()
	out := ""
	if ext == ".zip" {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			out += fmt.Sprintln(f.Name, f.Mode(), f.Modified.Unix(), string(text))
		}
		return out
	}
	g, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(g); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprintln(h.Name, h.FileInfo().Mode(), h.ModTime.Unix(), string(text))
	}
}
