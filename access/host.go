package access

import (
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Hosts are the names under which the server is reached, with or without a
// port: "ringi.example", "127.0.0.1:7464", "[::1]". A name without a port
// stands for every port. The zero value serves nobody.
//
// It keeps a name that somebody else has pointed at this machine (DNS
// rebinding) from being an origin of ours.
type Hosts []string

// Check returns [ErrHost] for a request to any other name.
func (h Hosts) Check(r *http.Request) error {
	name, port := splitHost(r.Host)
	for _, own := range h {
		n, p := splitHost(own)
		if n != "" && n == name && (p == "" || p == port) {
			return nil
		}
	}
	return fmt.Errorf("%w: %q", ErrHost, r.Host)
}

// splitHost parts a host into its name, in lower case and without the dot that
// may end it, and its port.
func splitHost(host string) (name, port string) {
	if n, p, err := net.SplitHostPort(host); err == nil {
		host, port = n, p
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, ".")), port
}

// Guard answers 421 (RFC 9110, 15.5.20) to a request to any other name.
func (h Hosts) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.Check(r) != nil {
			http.Error(w, "This host name is not served here.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
