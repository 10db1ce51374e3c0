package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Time-outs. A host that does not answer must not hold up the next source for
// long; a slow one that does answer may take its time. Variables for tests.
var (
	connectTimeout = 4 * time.Second
	tlsTimeout     = 8 * time.Second
	headerTimeout  = 20 * time.Second
	stallTimeout   = 30 * time.Second // no byte for so long: the request is given up and retried
	retryPause     = 250 * time.Millisecond
)

const (
	userAgent   = "ridge-hub/1"
	maxDocument = 32 << 20 // bytes of an index page, file listing or manifest
)

// client fetches for one Resolve.
type client struct {
	o          Options
	plain      *http.Client // hf, ollama, https
	pip        *http.Client // package indexes: their own certificates, proxy, time-outs
	pipConf    pipConfig
	limit      *limiter
	stall      time.Duration // longest wait between two bytes
	patience   time.Duration // longest wait for the first byte, beyond the transports' own limits
	transports []*http.Transport
}

func newClient(o Options) (*client, error) {
	c := &client{o: o, limit: newLimiter(o.LimitRate), stall: stallTimeout, patience: stallTimeout + headerTimeout}
	var err error
	if c.pipConf, err = readPipConfig(); err != nil {
		return nil, err
	}
	if o.HTTP != nil {
		c.plain, c.pip = withRedirectRules(o.HTTP), withRedirectRules(o.HTTP)
		return c, nil
	}
	certs := []string{firstEnv("SSL_CERT_FILE"), firstEnv("REQUESTS_CA_BUNDLE"), firstEnv("CURL_CA_BUNDLE")}
	roots, err := certPool(certs)
	if err != nil {
		return nil, err
	}
	if s := envSeconds("HF_HUB_DOWNLOAD_TIMEOUT"); s > 0 {
		c.stall = s
	}
	header := max(headerTimeout, envSeconds("HF_HUB_ETAG_TIMEOUT"))
	c.plain = c.newHTTP(roots, header, nil, nil)

	pipRoots := roots
	if c.pipConf.cert != "" {
		if pipRoots, err = certPool(append(certs, c.pipConf.cert)); err != nil {
			return nil, err
		}
	}
	pipHeader := max(headerTimeout, min(c.pipConf.timeout, 5*time.Minute))
	c.pip = c.newHTTP(pipRoots, pipHeader, c.pipConf.proxy, c.pipConf.trusted)
	c.patience = c.stall + max(header, pipHeader)
	return c, nil
}

func (c *client) close() {
	for _, t := range c.transports {
		t.CloseIdleConnections()
	}
}

func envSeconds(name string) time.Duration {
	n, err := strconv.ParseFloat(os.Getenv(name), 64)
	if err != nil || n <= 0 || n > 86400 {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

// certPool adds the certificates of the named files to the system's, so that a
// company's proxy is trusted where other tools were told to trust it.
func certPool(files []string) (*x509.CertPool, error) {
	var pool *x509.CertPool
	for _, f := range files {
		if f == "" {
			continue
		}
		pem, err := os.ReadFile(f)
		if err != nil {
			if st, serr := os.Stat(f); serr == nil && st.IsDir() {
				continue // a folder of hashed certificates: Go reads SSL_CERT_DIR itself
			}
			return nil, fmt.Errorf("hub: certificate file: %w", err)
		}
		if pool == nil {
			if pool, err = x509.SystemCertPool(); err != nil {
				pool = x509.NewCertPool()
			}
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("hub: certificate file %s: no PEM certificate in it", f)
		}
	}
	return pool, nil
}

// newHTTP makes a client. It speaks HTTP/1.1 only, so that parallel ranges are
// parallel connections. trusted hosts are not asked for a valid certificate.
func (c *client) newHTTP(roots *x509.CertPool, header time.Duration, proxy *url.URL, trusted map[string]bool) *http.Client {
	make := func(insecure bool) *http.Transport {
		t := &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   tlsTimeout,
			ResponseHeaderTimeout: header,
			TLSClientConfig:       &tls.Config{RootCAs: roots, InsecureSkipVerify: insecure},
			MaxIdleConnsPerHost:   16,
			IdleConnTimeout:       30 * time.Second,
			DisableCompression:    true,
		}
		if proxy != nil {
			t.Proxy = http.ProxyURL(proxy)
		}
		c.transports = append(c.transports, t)
		return t
	}
	var rt http.RoundTripper = make(false)
	if len(trusted) > 0 {
		rt = &trustingTransport{hosts: trusted, strict: rt, trusting: make(true)}
	}
	return withRedirectRules(&http.Client{Transport: rt})
}

// trustingTransport honours pip's trusted-host setting.
type trustingTransport struct {
	hosts            map[string]bool
	strict, trusting http.RoundTripper
}

func (t *trustingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.hosts[r.URL.Host] || t.hosts[r.URL.Hostname()] {
		return t.trusting.RoundTrip(r)
	}
	return t.strict.RoundTrip(r)
}

// withRedirectRules refuses a redirect from https to http and drops the token
// when a redirect leaves the host it was meant for.
func withRedirectRules(h *http.Client) *http.Client {
	c := *h
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("more than 10 redirects")
		}
		if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
			return fmt.Errorf("redirect from https to %s refused", req.URL.Scheme)
		}
		if req.URL.Host != via[0].URL.Host {
			req.Header.Del("Authorization")
		}
		return nil
	}
	return &c
}

// statusError is an answer that is not the wanted one.
type statusError struct {
	code       int
	url        string
	retryAfter time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: HTTP %d %s", e.url, e.code, http.StatusText(e.code))
}

func newStatusError(resp *http.Response) *statusError {
	e := &statusError{code: resp.StatusCode, url: cleanURL(resp.Request.URL)}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.retryAfter = min(time.Duration(s)*time.Second, 30*time.Second)
	}
	return e
}

func isStatus(err error, codes ...int) bool {
	var se *statusError
	if !errors.As(err, &se) {
		return false
	}
	for _, c := range codes {
		if se.code == c {
			return true
		}
	}
	return false
}

// cleanURL prints a URL without password and without a query, which may hold
// a signature.
func cleanURL(u *url.URL) string {
	v := *u
	v.RawQuery, v.Fragment = "", ""
	return v.Redacted()
}

// transient tells whether asking again may help.
func transient(err error) bool {
	var se *statusError
	if errors.As(err, &se) {
		return se.code == 408 || se.code == 425 || se.code == 429 || se.code >= 500
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return false
	}
	var cert *tls.CertificateVerificationError
	return !errors.As(err, &cert)
}

// noConnection tells that the host was not reached at all.
func noConnection(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || (errors.As(err, &op) && op.Op == "dial")
}

// timedOut tells that the host took the connection and then said nothing.
func timedOut(err error) bool {
	var ne net.Error
	return errors.Is(err, errStalled) || (errors.As(err, &ne) && ne.Timeout())
}

// reason puts a network error into the words of a person.
func reason(err error) error {
	var ue *url.Error
	if !errors.As(err, &ue) {
		return err
	}
	host := ue.URL
	if u, perr := url.Parse(ue.URL); perr == nil {
		host = u.Host
	}
	var dns *net.DNSError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("host %s not found", host)
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout(), errors.As(err, &dns) && dns.IsTimeout:
		return fmt.Errorf("host %s does not answer (waited %s)", host, connectTimeout)
	case errors.As(err, &cert):
		return fmt.Errorf("host %s: certificate not trusted (SSL_CERT_FILE can name more authorities): %w", host, cert.Err)
	}
	if ue.Timeout() {
		return fmt.Errorf("host %s takes the connection and sends no answer", host)
	}
	return fmt.Errorf("%s: %w", host, ue.Err)
}

// get asks for a URL once. The caller closes the body.
func get(ctx context.Context, h *http.Client, url string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", userAgent)
	return h.Do(req)
}

// document fetches a small text (a listing, a manifest) whole, with a few
// retries. It returns the body, the response's header and its final URL.
func (c *client) document(ctx context.Context, h *http.Client, rawURL string, header http.Header) ([]byte, *http.Response, error) {
	for try := 0; ; try++ {
		b, resp, err := c.documentOnce(ctx, h, rawURL, header)
		if err == nil || try >= 2 || ctx.Err() != nil || !transient(err) || noConnection(err) || timedOut(err) {
			return b, resp, reason(err)
		}
		pause := retryPause << try
		var se *statusError
		if errors.As(err, &se) {
			pause = max(pause, min(se.retryAfter, 5*time.Second))
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, nil, err
		}
	}
}

func (c *client) documentOnce(ctx context.Context, h *http.Client, rawURL string, header http.Header) ([]byte, *http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	resp, err := get(ctx, h, rawURL, header)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, newStatusError(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cleanURL(resp.Request.URL), err)
	}
	if len(b) > maxDocument {
		return nil, nil, fmt.Errorf("%s: larger than %s", cleanURL(resp.Request.URL), FormatBytes(maxDocument))
	}
	return b, resp, nil
}

// documentJSON fetches a document into v.
func (c *client) documentJSON(ctx context.Context, h *http.Client, rawURL string, header http.Header, v any) (*http.Response, error) {
	b, resp, err := c.document(ctx, h, rawURL, header)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return nil, fmt.Errorf("%s: not the expected JSON: %w", cleanURL(resp.Request.URL), err)
	}
	return resp, nil
}

// sourceErrors is what happened at each source of a model.
type sourceErrors struct {
	name string
	at   []string
	errs []error
}

func (e *sourceErrors) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hub: %s: no source could deliver it:", e.name)
	for i, err := range e.errs {
		fmt.Fprintf(&b, "\n  %s: %v", e.at[i], strings.TrimPrefix(err.Error(), "hub: "))
	}
	return b.String()
}

func (e *sourceErrors) Unwrap() []error { return e.errs }
