package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/admission"
	"holdfast/fault"
	"holdfast/gateway"
	"holdfast/wire/gatewayapi"
)

// The ports that this dialect's clients look for.
const (
	gatewayPort        = "8080"
	gatewayMetricsPort = "9094"
)

// ownGateway is the part of [gateway] in the file that is ours; sections of the dialect's own keys may stand beside it.
type ownGateway struct {
	Permissive         *bool  `toml:"permissive"`
	FeedbackWindow     int    `toml:"feedback-window-seconds"`
	SlowRewards        bool   `toml:"slow-rewards"`
	ReferencePenalties bool   `toml:"reference-penalties"`
	ExploredOnly       bool   `toml:"explored-only"`
	UnknownParameters  string `toml:"unknown-parameters"` // "refuse" or "ignore"
}

// gatewaySettings are what was configured for the gateway service beyond the settings with a flag.
type gatewaySettings struct {
	rate       *admission.Rate // nil: none
	deployment gateway.Deployment
	debit      *gateway.DebitTables // nil: what is shipped
	sessions   gateway.SessionOptions
	secret     string   // signs sessions; empty: the data folder's own does
	authOff    bool     // API keys are not asked for
	ignored    []string // names that do not apply here
}

// applyOwnGateway takes over what [gateway] says in our own words.
func (c *Config) applyOwnGateway() error {
	g, d := c.Gateway, &c.gateway.deployment
	if g.Permissive != nil && !c.given["gateway-permissive"] {
		c.GatewayPermissive = *g.Permissive
	}
	if g.FeedbackWindow < 0 {
		return errors.New("gateway.feedback-window-seconds: must not be negative")
	}
	if !slices.Contains([]string{"", "refuse", "ignore"}, g.UnknownParameters) {
		return fmt.Errorf("gateway.unknown-parameters: %q is neither refuse nor ignore", g.UnknownParameters)
	}
	d.FeedbackWindowSeconds, d.SlowRewards = g.FeedbackWindow, g.SlowRewards
	d.ReferencePenalties, d.ExploredOnly = g.ReferencePenalties, g.ExploredOnly
	d.IgnoreUnknown = g.UnknownParameters == "ignore"
	return nil
}

// applyForeign takes over what the dialect's own keys say, as far as it applies here. What a flag, a HOLDFAST variable or a
// setting of ours in the file says wins.
func (c *Config) applyForeign(f foreign) error {
	for _, part := range []func(foreign) error{c.foreignAddresses, c.foreignLog, c.foreignLimit, c.foreignAuthority, c.foreignUsers, c.foreignRules} {
		if err := part(f); err != nil {
			return err
		}
	}
	c.gateway.ignored = f.left()
	return nil
}

// foreignAddresses reads where to listen.
func (c *Config) foreignAddresses(f foreign) error {
	for _, at := range []struct {
		section, host, port, setting string
		addr                         *string
	}{
		{"server", "127.0.0.1", gatewayPort, "gateway-addr", &c.GatewayAddr},
		{"metrics", "127.0.0.1", gatewayMetricsPort, "gateway-metrics-addr", &c.GatewayMetricsAddr},
	} {
		host, hostGiven, err := f.text(at.section + ".host")
		if err != nil {
			return err
		}
		port, portGiven, err := f.whole(at.section + ".port")
		if err != nil {
			return err
		}
		if (hostGiven || portGiven) && !c.given[at.setting] {
			text := at.port
			if portGiven {
				text = strconv.Itoa(port)
			}
			*at.addr = net.JoinHostPort(cmp.Or(host, at.host), text)
		}
	}
	return nil
}

func (c *Config) foreignLog(f foreign) error {
	level, given, err := f.text("log.console.level")
	if given && !c.given["log-level"] {
		c.LogLevel = level
	}
	return err
}

// foreignLimit reads how many requests a credential may make in so many seconds.
func (c *Config) foreignLimit(f foreign) error {
	count, _, err := f.whole("limit.request_count")
	if err != nil {
		return err
	}
	seconds, given, err := f.whole("limit.duration")
	if err != nil || count == 0 {
		return err
	}
	if !given {
		seconds = 1
	}
	if seconds == 0 {
		return errors.New("limit.duration: must be at least 1 second")
	}
	c.gateway.rate = &admission.Rate{PerSecond: float64(count) / float64(seconds), Burst: float64(count)}
	return nil
}

// foreignAuthority reads the admin secret and whether API keys are asked for.
func (c *Config) foreignAuthority(f foreign) error {
	secret, given, err := f.text("admin_secret.secret")
	if err != nil {
		return err
	}
	if given && !c.given["admin-key"] {
		if secret == "" && !c.Dev {
			return errors.New("admin_secret.secret: an empty secret would let everybody in; leave it out and one is made")
		}
		c.AdminKey = secret
	}
	// The file that clients start from has it inside [admin_secret] by accident; where both are given, the top level wins.
	for _, path := range []string{"admin_secret.api_key_auth_enabled", "api_key_auth_enabled"} {
		on, given, err := f.truth(path)
		if err != nil {
			return err
		}
		if given {
			c.gateway.authOff = !on
		}
	}
	return nil
}

// foreignUsers reads [user_auth].
func (c *Config) foreignUsers(f foreign) error {
	s := &c.gateway.sessions
	secret, given, err := f.text("user_auth.jwt_secret")
	if err != nil {
		return err
	}
	if given && !c.Dev {
		if why := unfit(secret); why != "" {
			return fmt.Errorf("user_auth.jwt_secret: %s; leave it out and one is made", why)
		}
	}
	c.gateway.secret = secret
	for path, life := range map[string]*time.Duration{
		"user_auth.jwt_expiry_seconds": &s.Life, "user_auth.hs_redirect_jwt_expiry_seconds": &s.RedirectLife,
	} {
		seconds, _, err := f.whole(path)
		if err != nil {
			return err
		}
		if seconds > maxSessionSeconds {
			return fmt.Errorf("%s: at most %d", path, maxSessionSeconds)
		}
		*life = time.Duration(seconds) * time.Second
	}
	if s.EmailVerification, _, err = f.truth("user_auth.email_verification_enabled"); err != nil {
		return err
	}
	closed, given, err := f.truth("user_auth.signup_requires_admin_secret")
	if err != nil {
		return err
	}
	s.OpenSignup = given && !closed
	s.SuperAdmins, err = f.list("user_auth.super_admin_emails")
	return err
}

// maxSessionSeconds is the longest life of a session: a year.
const maxSessionSeconds = 365 * 24 * 60 * 60

// shortestSecret is how many bytes a session secret must have to be no placeholder.
const shortestSecret = 8

// unfit says why a session secret is not one, empty when it is.
func unfit(secret string) string {
	low := strings.ToLower(secret)
	for _, word := range []string{"change", "placeholder", "replace", "your", "example", "insecure", "default", "dummy", "todo", "secret", "xxxx"} {
		if strings.Contains(low, word) {
			return "it is a placeholder, and whoever knows it can make any session"
		}
	}
	if len(secret) < shortestSecret {
		return fmt.Sprintf("it has %d bytes and needs %d at least", len(secret), shortestSecret)
	}
	return ""
}

// foreignRules reads the tables of rules, connectors and debit networks. The members of [debit_routing_config] are those of an
// import of the tables.
func (c *Config) foreignRules(f foreign) error {
	g := &c.gateway
	var err error
	if g.deployment.RoutingKeys, err = f.table("routing_config.keys"); err != nil {
		return err
	}
	if g.deployment.Filters, err = f.table("pm_filters"); err != nil {
		return err
	}
	// The service reads both again; here they are read so that config check says what is wrong.
	if _, err = gateway.ParseCatalogue(g.deployment.RoutingKeys); err != nil {
		return fmt.Errorf("routing_config.keys: %s", fault.MessageOf(err))
	}
	if _, err = gateway.ParseFilters(g.deployment.Filters); err != nil {
		return errors.New(fault.MessageOf(err))
	}
	debit := map[string]any{}
	for _, name := range gatewayapi.DebitMembers() {
		if value, given := f.take("debit_routing_config." + name); given {
			debit[name] = value
		}
	}
	if len(debit) == 0 {
		return nil
	}
	if g.debit, err = gatewayapi.ParseDebitTables(debit); err != nil {
		return fmt.Errorf("debit_routing_config: %s", fault.MessageOf(err))
	}
	return nil
}

// gatewayMetricsAddr is where the gateway API's scrapers are served, empty for nowhere. sure is false for the address that
// nobody asked for by name: a start does not fail for it.
func (c *Config) gatewayMetricsAddr() (addr string, sure bool) {
	if c.GatewayMetricsAddr != "" {
		return c.GatewayMetricsAddr, true
	}
	host, _, err := net.SplitHostPort(c.GatewayAddr)
	if err != nil || c.given["gateway-metrics-addr"] {
		return "", false
	}
	return net.JoinHostPort(host, gatewayMetricsPort), false
}

// validateGateway says what of the gateway service's settings cannot be served.
func (c *Config) validateGateway() error {
	for _, s := range []struct{ name, addr string }{{"gateway-addr", c.GatewayAddr}, {"gateway-metrics-addr", c.GatewayMetricsAddr}} {
		if s.addr == "" {
			continue
		}
		host, _, err := net.SplitHostPort(s.addr)
		if err != nil {
			return fmt.Errorf("%s: %q is not host:port", s.name, s.addr)
		}
		if c.Dev && !c.DevRemote && !loopback(host) {
			return fmt.Errorf("dev-mode: %s is not a loopback address; say --dev-mode-allow-remote if that is meant", s.addr)
		}
		if c.given[s.name] && !slices.Contains(c.Services, "gateway") {
			return fmt.Errorf("%s: means nothing without the gateway service", s.name)
		}
	}
	d := &c.gateway.deployment
	if _, err := gateway.ParseCatalogue(d.RoutingKeys); err != nil {
		return errors.New(fault.MessageOf(err))
	}
	if _, err := gateway.ParseFilters(d.Filters); err != nil {
		return errors.New(fault.MessageOf(err))
	}
	return nil
}
