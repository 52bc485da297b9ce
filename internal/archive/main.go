// Command archive writes a release archive: the same bytes for the same files,
// whoever makes it, where and when.
//
//	go run ./internal/archive -out ringi_linux_amd64.tar.gz -root ringi -time 1700000000 FILE...
//
// A name that ends in .zip makes a zip file, one in .tar.gz a compressed tar.
// The files lie under root, by their base names, in the order given.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	out := flag.String("out", "", "the archive: NAME.zip or NAME.tar.gz")
	root := flag.String("root", "", "the folder in the archive that all files lie in")
	at := flag.Int64("time", 0, "the time of all files, in seconds since 1970")
	flag.Parse()
	if err := write(*out, *root, time.Unix(*at, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

// write writes the archive, whole or not at all.
func write(out, root string, at time.Time, files []string) error {
	if len(files) == 0 || root == "" {
		return errors.New("say -out, -root and the files")
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	switch {
	case strings.HasSuffix(out, ".zip"):
		err = writeZip(f, root, at, files)
	case strings.HasSuffix(out, ".tar.gz"):
		err = writeTar(f, root, at, files)
	default:
		err = fmt.Errorf("%s is neither .zip nor .tar.gz", out)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(out))
	}
	return nil
}

func writeZip(w io.Writer, root string, at time.Time, files []string) error {
	z := zip.NewWriter(w)
	for _, file := range files {
		h := &zip.FileHeader{Name: path.Join(root, filepath.Base(file)), Method: zip.Deflate, Modified: at}
		h.SetMode(modeOf(file))
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if err := add(to, file); err != nil {
			return err
		}
	}
	return z.Close()
}

func writeTar(w io.Writer, root string, at time.Time, files []string) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression) // its header has no name and no time
	if err != nil {
		return err
	}
	t := tar.NewWriter(compressed)
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: path.Join(root, filepath.Base(file)), Mode: int64(modeOf(file)), Size: info.Size(), ModTime: at, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if err := add(t, file); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), compressed.Close())
}

// modeOf is a file's mode in the archive, whatever it is here: the program may
// be run.
func modeOf(file string) os.FileMode {
	if strings.TrimSuffix(filepath.Base(file), ".exe") == "ringi" {
		return 0o755
	}
	return 0o644
}

func add(to io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, f)
	return errors.Join(err, f.Close())
}
