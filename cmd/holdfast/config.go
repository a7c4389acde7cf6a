package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"
)

// Config is everything a start can be told. Flags win over the environment, the environment over the file, the file over
// the defaults. It is frozen once loaded; packages get their own Options.
type Config struct {
	Addr               string   `toml:"addr"`
	Data               string   `toml:"data"`
	Services           []string `toml:"services"`
	AdminKey           string   `toml:"admin-key"`
	GatewayAddr        string   `toml:"gateway-addr"`
	GatewayMetricsAddr string   `toml:"gateway-metrics-addr"`
	GatewayPermissive  bool     `toml:"gateway-permissive"`
	DrainDelay         Duration `toml:"drain-delay"`
	LogLevel           string   `toml:"log-level"`
	SpaceAddr          string   `toml:"space-addr"`
	DecoyAddr          string   `toml:"decoy-addr"`
	Lures              string   `toml:"lures"`
	Database           string   `toml:"-"` // a text of ours or a section of the gateway API's: see readFile
	Scores             string   `toml:"scores"`
	MetricsPublic      bool     `toml:"metrics-public"`
	Specs              string   `toml:"specs"`
	Dev                bool     `toml:"dev-mode"`
	DevRemote          bool     `toml:"dev-mode-allow-remote"`
	Workers            int      `toml:"workers"`
	RateLimit          float64  `toml:"rate-limit-rps"`
	RateBurst          float64  `toml:"rate-limit-burst"`

	Gateway ownGateway `toml:"gateway"`

	given   map[string]bool // settings that were named by a flag, a variable or the file
	gateway gatewaySettings
}

// Duration is a time.Duration that is written as text, like "1s".
type Duration time.Duration

// UnmarshalText reads a length of time like 1.5s; it must not be negative.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a length of time like 1s", text)
	}
	*d = Duration(v)
	return nil
}

// String writes it as it is read.
func (d Duration) String() string { return time.Duration(d).String() }

// services lists what --services may name and whether this build has it.
var services = map[string]bool{"decision": true, "gateway": true, "space": false, "decoy": false}

func defaults() Config {
	return Config{
		Addr: "127.0.0.1:8787", Data: "./holdfast-data", Services: []string{"decision", "gateway"},
		RateLimit: 1000, RateBurst: 2000, LogLevel: "info", DrainDelay: Duration(drainDelay), given: map[string]bool{},
	}
}

// drainDelay is how long a stop that was asked for is announced by readiness alone.
const drainDelay = time.Second

// drain is the DrainDelay that applies: without the gateway service, whose clients look for it, only one that was given.
func (c *Config) drain() time.Duration {
	if !c.given["drain-delay"] && !slices.Contains(c.Services, "gateway") {
		return 0
	}
	return time.Duration(c.DrainDelay)
}

// setting binds one name to its flag, its environment variables (the first one set wins) and its place in the file.
type setting struct {
	name, env, usage string
	value            func(*Config) any
}

var settings = []setting{
	{"addr", "HOLDFAST_ADDR", "main listener: API, console, /metrics, /health", func(c *Config) any { return &c.Addr }},
	{"data", "HOLDFAST_DATA", "folder of the embedded store", func(c *Config) any { return &c.Data }},
	{"services", "HOLDFAST_SERVICES", "which services to run, separated by commas", func(c *Config) any { return &c.Services }},
	{"admin-key", "HOLDFAST_ADMIN_KEY SYNTRA_ADMIN_KEY LYCAN_ADMIN_KEY", "operator key (made at the first start when absent)", func(c *Config) any { return &c.AdminKey }},
	{"gateway-addr", "HOLDFAST_GATEWAY_ADDR", "listener on which only the gateway API answers", func(c *Config) any { return &c.GatewayAddr }},
	{"gateway-metrics-addr", "HOLDFAST_GATEWAY_METRICS_ADDR", "listener of that API's metrics (with --gateway-addr: its host, port 9094)", func(c *Config) any { return &c.GatewayMetricsAddr }},
	{"gateway-permissive", "HOLDFAST_GATEWAY_PERMISSIVE", "let every credential of the gateway API reach every merchant", func(c *Config) any { return &c.GatewayPermissive }},
	{"space-addr", "HOLDFAST_SPACE_ADDR", "listener on which only the space API answers", func(c *Config) any { return &c.SpaceAddr }},
	{"decoy-addr", "HOLDFAST_DECOY_ADDR", "listener on which only the decoy API answers", func(c *Config) any { return &c.DecoyAddr }},
	{"lures", "HOLDFAST_LURES", "which decoys listen where, e.g. ssh=:2222,http=:8081", func(c *Config) any { return &c.Lures }},
	{"database", "HOLDFAST_DATABASE", "database server to use instead of the embedded store", func(c *Config) any { return &c.Database }},
	{"scores", "HOLDFAST_SCORES", "redis://… that several instances share gateway windows through", func(c *Config) any { return &c.Scores }},
	{"metrics-public", "HOLDFAST_METRICS_PUBLIC SYNTRA_METRICS_PUBLIC", "serve /metrics without a credential", func(c *Config) any { return &c.MetricsPublic }},
	{"specs", "HOLDFAST_SPECS SYNTRA_SPECS_DIR", "folder of capsule specs to apply at start", func(c *Config) any { return &c.Specs }},
	{"dev-mode", "", "no authentication and no limiter, on loopback addresses only", func(c *Config) any { return &c.Dev }},
	{"dev-mode-allow-remote", "", "let --dev-mode listen on any address", func(c *Config) any { return &c.DevRemote }},
	{"drain-delay", "HOLDFAST_DRAIN_DELAY", "how long a stop is announced by readiness alone, while everything is still accepted", func(c *Config) any { return &c.DrainDelay }},
	{"log-level", "HOLDFAST_LOG_LEVEL", "debug, info, warn or error", func(c *Config) any { return &c.LogLevel }},
	{"workers", "", "processors to use (0: all)", func(c *Config) any { return &c.Workers }},
	{"rate-limit-rps", "HOLDFAST_RATE_LIMIT_RPS SYNTRA_RATE_LIMIT_RPS", "requests per second of one credential", func(c *Config) any { return &c.RateLimit }},
	{"rate-limit-burst", "HOLDFAST_RATE_LIMIT_BURST SYNTRA_RATE_LIMIT_BURST", "requests at once of one credential", func(c *Config) any { return &c.RateBurst }},
}

// bindFlags adds every setting to flags, and --config and the alias --store beside them.
func bindFlags(flags *pflag.FlagSet) {
	shown := defaults()
	for _, s := range settings {
		usage := s.usage
		if s.env != "" {
			usage += " [" + strings.Fields(s.env)[0] + "]"
		}
		switch v := s.value(&shown).(type) {
		case *string:
			flags.String(s.name, *v, usage)
		case *[]string:
			flags.StringSlice(s.name, *v, usage)
		case *bool:
			flags.Bool(s.name, *v, usage)
		case *int:
			flags.Int(s.name, *v, usage)
		case *float64:
			flags.Float64(s.name, *v, usage)
		case *Duration:
			flags.Duration(s.name, time.Duration(*v), usage)
		}
	}
	flags.String("config", "", "TOML file with the same names [HOLDFAST_CONFIG]")
	flags.SetNormalizeFunc(storeIsData)
}

// storeIsData keeps --store working for --data.
func storeIsData(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "store" {
		name = "data"
	}
	return pflag.NormalizedName(name)
}

// loadConfig reads file, environment and flags, in that order, and checks the result.
func loadConfig(flags *pflag.FlagSet, env environment) (Config, error) {
	c := defaults()
	file, _ := flags.GetString("config")
	if v, ok := env["HOLDFAST_CONFIG"]; ok && !flags.Changed("config") {
		file = v
	}
	theirs := foreign{}
	if file != "" {
		if err := c.readFile(file, theirs); err != nil {
			return c, err
		}
	}
	theirs.adoptVariables(env)
	for _, s := range settings {
		for name := range strings.FieldsSeq(s.env) {
			text, ok := env[name]
			if !ok {
				continue
			}
			if err := s.set(&c, text); err != nil {
				return c, fmt.Errorf("%s: %w", name, err)
			}
			break
		}
		if f := flags.Lookup(s.name); f != nil && f.Changed {
			text := f.Value.String()
			if list, ok := f.Value.(pflag.SliceValue); ok {
				text = strings.Join(list.GetSlice(), ",")
			}
			if err := s.set(&c, text); err != nil {
				return c, fmt.Errorf("--%s: %w", s.name, err)
			}
		}
	}
	if err := errors.Join(c.applyOwnGateway(), c.applyForeign(theirs)); err != nil {
		return c, err
	}
	return c, c.Validate()
}

// set parses text into the setting's place.
func (s setting) set(c *Config, text string) (err error) {
	switch v := s.value(c).(type) {
	case *string:
		*v = text
	case *[]string:
		*v = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	case *bool:
		if *v, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case *int:
		if *v, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
	case *float64:
		if *v, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
	case *Duration:
		if err := v.UnmarshalText([]byte(text)); err != nil {
			return err
		}
	}
	c.given[s.name] = true
	return nil
}

// readFile decodes the TOML file strictly: an unknown name fails and is shown with its place. Sections of the gateway API's own
// keys go to theirs.
func (c *Config) readFile(name string, theirs foreign) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("config file: %w", err)
	}
	var names map[string]any
	d := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		strict, ok := errors.AsType[*toml.StrictMissingError](err)
		if ok {
			strict.Errors = slices.DeleteFunc(strict.Errors, func(e toml.DecodeError) bool { return isForeign(e.Key()) })
			if len(strict.Errors) > 0 {
				return fmt.Errorf("config file %s: unknown name\n%s", name, strict.String())
			}
			err = nil
		}
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := at.Position()
			return fmt.Errorf("config file %s:%d:%d: %w", name, line, column, err)
		}
		if err != nil {
			return fmt.Errorf("config file %s: %w", name, err)
		}
	}
	if err := toml.Unmarshal(text, &names); err != nil {
		return fmt.Errorf("config file %s: %w", name, err)
	}
	for _, s := range settings {
		_, c.given[s.name] = names[s.name]
	}
	if address, text := names["database"].(string); text {
		c.Database = address
	}
	theirs.adopt(names)
	return nil
}

// Validate says what cannot be served, in one sentence that names the setting.
func (c *Config) Validate() error {
	for _, name := range c.Services {
		if has, known := services[name]; !known {
			return fmt.Errorf("services: there is no service %q", name)
		} else if !has {
			return fmt.Errorf("services: this build does not have %q; leave it out", name)
		}
	}
	if len(c.Services) == 0 {
		return errors.New("services: name at least one")
	}
	for _, s := range settings {
		if v, ok := s.value(c).(*string); ok && *v != "" && slices.Contains(unserved, s.name) {
			return fmt.Errorf("%s: this build does not have the part it configures; leave it out", s.name)
		}
	}
	if c.given["admin-key"] && c.AdminKey == "" {
		return errors.New("admin-key: an empty key would let everybody in; leave it out and one is made")
	}
	if !(c.RateLimit > 0) || !(c.RateBurst > 0) {
		return errors.New("rate-limit-rps and rate-limit-burst must be greater than 0")
	}
	if _, err := c.level(); err != nil {
		return err
	}
	if c.Workers < 0 {
		return errors.New("workers: must not be negative")
	}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf("addr: %q is not host:port", c.Addr)
	}
	if c.DevRemote && !c.Dev {
		return errors.New("dev-mode-allow-remote: means nothing without dev-mode")
	}
	if c.Dev && !c.DevRemote && !loopback(host) {
		return fmt.Errorf("dev-mode: %s is not a loopback address; say --dev-mode-allow-remote if that is meant", c.Addr)
	}
	return c.validateGateway()
}

// level is the log level as slog has it. The gateway API's own configuration knows trace besides, which is debug here.
func (c *Config) level() (level slog.Level, err error) {
	if strings.EqualFold(c.LogLevel, "trace") {
		return slog.LevelDebug, nil
	}
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return level, fmt.Errorf("log-level: %q is none of debug, info, warn and error", c.LogLevel)
	}
	return level, nil
}

// unserved are the settings whose part is not in this build.
var unserved = []string{"space-addr", "decoy-addr", "lures", "database", "scores"}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// shown is the configuration as config check prints it: a key is never shown.
func (c Config) shown() string {
	if c.AdminKey != "" {
		c.AdminKey = "(given)"
	}
	c.Data = filepath.Clean(c.Data)
	var b strings.Builder
	for _, s := range settings {
		switch v := s.value(&c).(type) {
		case *string:
			fmt.Fprintf(&b, "%-22s = %q\n", s.name, *v)
		case *[]string:
			fmt.Fprintf(&b, "%-22s = %q\n", s.name, *v)
		case *bool:
			fmt.Fprintf(&b, "%-22s = %v\n", s.name, *v)
		case *int:
			fmt.Fprintf(&b, "%-22s = %v\n", s.name, *v)
		case *float64:
			fmt.Fprintf(&b, "%-22s = %v\n", s.name, *v)
		case *Duration:
			fmt.Fprintf(&b, "%-22s = %q\n", s.name, v)
		}
	}
	if len(c.gateway.ignored) > 0 {
		fmt.Fprintf(&b, "# does not apply here and is ignored: %s\n", strings.Join(c.gateway.ignored, ", "))
	}
	return b.String()
}
