package notify

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
)

// message is a notice as a message (RFC 5322): plain text and the same as HTML.
func (m *Mail) message(n Notice) ([]byte, error) {
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	// The boundary follows from the notice: sent again, it is the same message.
	sum := sha256.Sum256([]byte("ringi-boundary\x00" + n.ID))
	if err := parts.SetBoundary("=_" + base64.RawURLEncoding.EncodeToString(sum[:18])); err != nil {
		return nil, fmt.Errorf("write mail: %w", err)
	}
	var page bytes.Buffer
	if err := mailPage.Execute(&page, n); err != nil {
		return nil, fmt.Errorf("write mail: %w", err)
	}
	for _, part := range [][2]string{{"text/plain", mailText(n)}, {"text/html", page.String()}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {part[0] + "; charset=utf-8"}, "Content-Transfer-Encoding": {"quoted-printable"}})
		if err != nil {
			return nil, fmt.Errorf("write mail: %w", err)
		}
		q := quotedprintable.NewWriter(w)
		_, err = q.Write([]byte(strings.ReplaceAll(part[1], "\n", "\r\n")))
		if err == nil {
			err = q.Close()
		}
		if err != nil {
			return nil, fmt.Errorf("write mail: %w", err)
		}
	}
	if err := parts.Close(); err != nil {
		return nil, fmt.Errorf("write mail: %w", err)
	}
	var out bytes.Buffer
	for _, h := range m.headers(n, parts.Boundary()) {
		if strings.ContainsAny(h[1], "\r\n") {
			return nil, fmt.Errorf("%w: header %s has a line break", ErrRefused, h[0])
		}
		fmt.Fprintf(&out, "%s: %s\r\n", h[0], h[1])
	}
	out.WriteString("\r\n")
	out.Write(body.Bytes())
	return out.Bytes(), nil
}

func (m *Mail) headers(n Notice, boundary string) [][2]string {
	_, domain, _ := strings.Cut(m.from.Address, "@")
	return [][2]string{
		{"Date", m.o.Now().Format(time.RFC1123Z)},
		{"From", (&mail.Address{Name: line(m.from.Name), Address: m.from.Address}).String()},
		{"To", (&mail.Address{Name: line(n.To.Name), Address: n.To.Mail}).String()},
		{"Subject", mime.QEncoding.Encode("utf-8", line(n.Title()))},
		// The notice's own: a mailbox that gets it twice shows it once.
		{"Message-ID", "<" + n.ID + "@" + domain + ">"},
		{"List-ID", "Ringi <ringi." + domain + ">"},        // RFC 2919
		{"List-Unsubscribe", "<" + line(n.Settings) + ">"}, // RFC 2369
		{"Auto-Submitted", "auto-generated"},               // RFC 3834: no holiday notes back
		{"MIME-Version", "1.0"},
		{"Content-Type", `multipart/alternative; boundary="` + boundary + `"`},
	}
}

// line drops what cannot stand in a header: controls, line breaks among them.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == '\u0085' {
			return -1
		}
		return r
	}, s)
}

func mailText(n Notice) string {
	return n.Title() + ".\n\n" + n.Body() + "\n\n" + n.Link + "\n\n-- \nHow you are reached: " + n.Settings + "\n"
}

var mailPage = template.Must(template.New("mail").Parse(`<!DOCTYPE html>
<html lang="en"><body>
<p><strong>{{.Title}}.</strong></p>
<p>{{range .Lines}}{{.}}<br>
{{end}}</p>
<p><a href="{{.Link}}">Open Ringi</a></p>
<p><small><a href="{{.Settings}}">How you are reached</a></small></p>
</body></html>
`))
