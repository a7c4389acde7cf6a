package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// loaded runs loadConfig with args as flags, env as environment and file as the configuration file.
func loaded(t *testing.T, args []string, env map[string]string, file string) (Config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	bindFlags(flags)
	if file != "" {
		name := filepath.Join(t.TempDir(), "holdfast.toml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", name)
	}
	if err := flags.Parse(args); err != nil {
		return Config{}, err
	}
	return loadConfig(flags, environment(env))
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	file := "addr = \"127.0.0.1:1\"\ndata = \"file\"\nrate-limit-rps = 5.5\n"
	env := map[string]string{"HOLDFAST_ADDR": "127.0.0.1:2", "HOLDFAST_DATA": "env"}
	c, err := loaded(t, []string{"--addr", "127.0.0.1:3"}, env, file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Addr != "127.0.0.1:3" || c.Data != "env" || c.RateLimit != 5.5 || c.RateBurst != 2000 {
		t.Errorf("got addr %q data %q rate %v burst %v", c.Addr, c.Data, c.RateLimit, c.RateBurst)
	}
}

func TestOldNamesKeepWorking(t *testing.T) {
	c, err := loaded(t, []string{"--store", "old"}, map[string]string{
		"SYNTRA_ADMIN_KEY": "s", "LYCAN_ADMIN_KEY": "l", "SYNTRA_METRICS_PUBLIC": "1", "SYNTRA_SPECS_DIR": "d",
		"SYNTRA_RATE_LIMIT_RPS": "0.2", "SYNTRA_RATE_LIMIT_BURST": "7",
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != "old" || c.AdminKey != "s" || !c.MetricsPublic || c.Specs != "d" || c.RateLimit != 0.2 || c.RateBurst != 7 {
		t.Errorf("got %+v", c)
	}
}

func TestBadConfigurationIsNamed(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		env  map[string]string
		file string
		want string
	}{
		{"unknown name", nil, nil, "adress = \"x\"\n", "adress"},
		{"wrong type", nil, nil, "workers = \"many\"\n", ":1:"},
		{"broken file", nil, nil, "addr = \n", ":1:"},
		{"no such service", []string{"--services", "decision,tea"}, nil, "", `no service "tea"`},
		{"service not built", []string{"--services", "decision,space"}, nil, "", `does not have "space"`},
		{"no service", []string{"--services", ""}, nil, "", "at least one"},
		{"empty key", []string{"--admin-key", ""}, nil, "", "empty key"},
		{"empty key in file", nil, nil, "admin-key = \"\"\n", "empty key"},
		{"empty key in environment", nil, map[string]string{"HOLDFAST_ADMIN_KEY": ""}, "", "empty key"},
		{"rate 0", nil, map[string]string{"SYNTRA_RATE_LIMIT_RPS": "0"}, "", "greater than 0"},
		{"burst NaN", nil, map[string]string{"SYNTRA_RATE_LIMIT_BURST": "NaN"}, "", "greater than 0"},
		{"rate text", nil, map[string]string{"SYNTRA_RATE_LIMIT_RPS": "fast"}, "", "SYNTRA_RATE_LIMIT_RPS"},
		{"addr", []string{"--addr", "8787"}, nil, "", "host:port"},
		{"remote dev mode", []string{"--dev-mode", "--addr", "0.0.0.0:8787"}, nil, "", "loopback"},
		{"allow-remote alone", []string{"--dev-mode-allow-remote"}, nil, "", "without dev-mode"},
		{"part not built", []string{"--database", "postgres://x"}, nil, "", "database"},
		{"unknown flag", []string{"--adr", "x"}, nil, "", "unknown flag"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := loaded(t, tc.args, tc.env, tc.file); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
		})
	}
}

func TestConfigNeverShowsTheKey(t *testing.T) {
	c, err := loaded(t, []string{"--admin-key", "sesame"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if text := c.shown(); strings.Contains(text, "sesame") || !strings.Contains(text, "(given)") {
		t.Errorf("shown as:\n%s", text)
	}
}
