package access

import (
	"container/list"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Rate is how often something may happen: Burst at once, and PerMinute in the
// long run. The zero value takes the default; a negative PerMinute has no
// limit.
type Rate struct{ PerMinute, Burst int }

// LimiterOptions say how much is too much. The zero value is ready to use.
type LimiterOptions struct {
	// Principal bounds one principal's requests; zero: 600 a minute, 120 at once.
	Principal Rate
	// Address bounds those of one address, whoever sends them, before anything
	// is looked up; zero: 1,200 a minute, 240 at once. An IPv6 network of 64 bits
	// counts as one address.
	Address Rate
	// Max is how many principals, and addresses, are kept in mind; 0 means
	// 10,000. Above it the one that asked longest ago is forgotten.
	Max int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Limiter counts requests in memory: each process counts for itself. It is safe
// for goroutines.
type Limiter struct {
	principals, addresses *buckets
}

// NewLimiter returns a limiter that has counted nothing yet.
func NewLimiter(o LimiterOptions) *Limiter {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Max <= 0 {
		o.Max = 10_000
	}
	return &Limiter{newBuckets(o, o.Principal, Rate{600, 120}), newBuckets(o, o.Address, Rate{1200, 240})}
}

// Principal counts a request of who; *[LimitError] where it is too many.
func (l *Limiter) Principal(w Who) error { return l.principals.take(w.Principal.ID) }

// Address counts a request from an address; *[LimitError] where it is too many.
func (l *Limiter) Address(addr netip.Addr) error {
	addr = addr.Unmap()
	if addr.Is6() {
		if net, err := addr.WithZone("").Prefix(64); err == nil {
			addr = net.Addr()
		}
	}
	return l.addresses.take(addr.String())
}

// Guard answers 429 (RFC 6585, 4), with Retry-After, to an address that asks
// too often.
func (l *Limiter) Guard(p Proxies, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := l.Address(p.Addr(r)); err != nil {
			RetryAfter(w, err)
			http.Error(w, "Too many requests.", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// RetryAfter sets the header of that name where err is a *[LimitError].
func RetryAfter(w http.ResponseWriter, err error) {
	var limit *LimitError
	if errors.As(err, &limit) {
		seconds := (limit.After + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	}
}

// buckets are token buckets by key, the one that was used last in front.
type buckets struct {
	mu    sync.Mutex
	rate  Rate
	max   int
	now   func() time.Time
	order *list.List
	by    map[string]*list.Element
}

type bucket struct {
	key  string
	left float64
	at   time.Time
}

func newBuckets(o LimiterOptions, rate, def Rate) *buckets {
	if rate.PerMinute == 0 {
		rate.PerMinute = def.PerMinute
	}
	if rate.Burst <= 0 {
		rate.Burst = def.Burst
	}
	return &buckets{rate: rate, max: o.Max, now: o.Now, order: list.New(), by: map[string]*list.Element{}}
}

func (b *buckets) take(key string) error {
	if b.rate.PerMinute < 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	e := b.by[key]
	if e == nil {
		if b.order.Len() >= b.max {
			last := b.order.Back()
			delete(b.by, b.order.Remove(last).(*bucket).key)
		}
		e = b.order.PushFront(&bucket{key: key, left: float64(b.rate.Burst), at: now})
		b.by[key] = e
	}
	b.order.MoveToFront(e)
	k := e.Value.(*bucket)
	perSecond := float64(b.rate.PerMinute) / 60
	if passed := now.Sub(k.at); passed > 0 { // a clock set back fills nothing
		k.left = min(float64(b.rate.Burst), k.left+passed.Seconds()*perSecond)
		k.at = now
	}
	if k.left < 1 {
		return &LimitError{After: time.Duration((1 - k.left) / perSecond * float64(time.Second))}
	}
	k.left--
	return nil
}
