package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"
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
		{"drain delay", []string{"--drain-delay", "-1s"}, nil, "", "length of time"},
		{"drain delay in file", nil, nil, "drain-delay = \"soon\"\n", "length of time"},
		{"log level", nil, map[string]string{"HOLDFAST_LOG_LEVEL": "loud"}, "", "log-level"},
		{"gateway address", []string{"--gateway-addr", "8080"}, nil, "", "gateway-addr"},
		{"gateway address without the service", []string{"--services", "decision", "--gateway-addr", "127.0.0.1:1"}, nil, "", "without the gateway service"},
		{"remote gateway in dev mode", []string{"--dev-mode", "--gateway-addr", "0.0.0.0:1"}, nil, "", "loopback"},
		{"unknown name of the gateway", nil, nil, "[gateway]\npermissiv = true\n", "permissiv"},
		{"unknown section of the gateway", nil, nil, "[gateway.sever]\nport = 1\n", "sever"},
		{"unknown section", nil, nil, "[sever]\nport = 1\n", "sever"},
		{"what to do with unknown parameters", nil, nil, "[gateway]\nunknown-parameters = \"drop\"\n", "unknown-parameters"},
		{"feedback window", nil, nil, "[gateway]\nfeedback-window-seconds = -1\n", "feedback-window-seconds"},
		{"placeholder", nil, nil, "[user_auth]\njwt_secret = \"change_me_in_production\"\n", "placeholder"},
		{"short secret", nil, map[string]string{"DECISION_ENGINE__USER_AUTH__JWT_SECRET": "abc"}, "", "3 bytes"},
		{"empty session secret", nil, nil, "[user_auth]\njwt_secret = \"\"\n", "0 bytes"},
		{"empty admin secret", nil, nil, "[admin_secret]\nsecret = \"\"\n", "empty secret"},
		{"port", nil, map[string]string{"DECISION_ENGINE__SERVER__PORT": "http"}, "", "server.port"},
		{"truth", nil, nil, "api_key_auth_enabled = \"perhaps\"\n", "neither true nor false"},
		{"routing key", nil, nil, "[routing_config.keys]\namount = { type = \"colour\" }\n", "amount"},
		{"filter", nil, nil, "[pm_filters]\nalphapay = 3\n", "pm_filters.alphapay"},
		{"debit rate", nil, nil, "[debit_routing_config]\nfraud_check_fee = \"free\"\n", "fraud_check_fee"},
		{"section that is none", nil, nil, "pm_filters = 7\n", "section of keys"},
		{"life of a session", nil, nil, "[user_auth]\njwt_expiry_seconds = 99999999999\n", "jwt_expiry_seconds"},
		{"limit over nothing", nil, nil, "[limit]\nrequest_count = 5\nduration = 0\n", "limit.duration"},
		{"list of numbers", nil, nil, "[user_auth]\nsuper_admin_emails = [1]\n", "list of texts"},
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

// theirFile is a file as the gateway API's users have it.
const theirFile = `
api_key_auth_enabled = true
[server]
host = "0.0.0.0"
port = 8081
[metrics]
host = "0.0.0.0"
port = 9095
[log.console]
enabled = true
level = "DEBUG"
[limit]
request_count = 120
duration = 60
[database]
username = "u"
[redis]
host = "localhost"
pool_size = 5
[admin_secret]
secret = "their-admin-secret"
api_key_auth_enabled = false
[user_auth]
jwt_secret = "0f3c8a5b7d91e24466aa"
jwt_expiry_seconds = 3600
signup_requires_admin_secret = false
email_verification_enabled = true
super_admin_emails = ["boss@example.com"]
[routing_config.keys]
amount = { type = "integer" }
[pm_filters.alphapay]
credit = { country = "PT", currency = "EUR" }
[debit_routing_config]
fraud_check_fee = 0.02
something_else = 1
[gateway]
permissive = true
unknown-parameters = "ignore"
feedback-window-seconds = 900
[gateway.mem_cache]
sr_score_ttl_ms = 75
`

func TestTheGatewayAPIsOwnConfigurationIsUsed(t *testing.T) {
	c, err := loaded(t, nil, nil, theirFile)
	if err != nil {
		t.Fatal(err)
	}
	g := c.gateway
	if c.GatewayAddr != "0.0.0.0:8081" || c.GatewayMetricsAddr != "0.0.0.0:9095" || c.LogLevel != "DEBUG" || c.AdminKey != "their-admin-secret" || !c.GatewayPermissive {
		t.Errorf("addresses %q %q, level %q, permissive %v", c.GatewayAddr, c.GatewayMetricsAddr, c.LogLevel, c.GatewayPermissive)
	}
	if g.rate == nil || g.rate.PerSecond != 2 || g.rate.Burst != 120 || g.authOff {
		t.Errorf("rate %+v, keys off %v", g.rate, g.authOff)
	}
	if s := g.sessions; g.secret != "0f3c8a5b7d91e24466aa" || s.Life != time.Hour || !s.OpenSignup || !s.EmailVerification || !slices.Equal(s.SuperAdmins, []string{"boss@example.com"}) {
		t.Errorf("sessions %+v", s)
	}
	d := g.deployment
	if d.RoutingKeys["amount"] == nil || d.Filters["alphapay"] == nil || g.debit == nil || g.debit.FraudCheck != 0.02 || !d.IgnoreUnknown || d.FeedbackWindowSeconds != 900 {
		t.Errorf("deployment %+v", d)
	}
	ignored := []string{"database.username", "debit_routing_config.something_else", "log.console.enabled", "mem_cache.sr_score_ttl_ms", "redis.host", "redis.pool_size"}
	if !slices.Equal(g.ignored, ignored) {
		t.Errorf("ignored %q, want %q", g.ignored, ignored)
	}
	if text := c.shown(); strings.Contains(text, "their-admin-secret") || strings.Contains(text, g.secret) || !strings.Contains(text, "redis.host") {
		t.Errorf("shown as:\n%s", text)
	}
}

func TestOursWinsOverTheGatewayAPIsOwn(t *testing.T) {
	env := map[string]string{"HOLDFAST_GATEWAY_METRICS_ADDR": "127.0.0.1:2", "DECISION_ENGINE__METRICS__PORT": "3", "DECISION_ENGINE__LIMIT__REQUEST_COUNT": "7",
		"DECISION_ENGINE__LIMIT__DURATION": "7", "HOLDFAST_GATEWAY_PERMISSIVE": "false", "DECISION_ENGINE__TENANT_SECRETS__PUBLIC__SCHEMA": "public"}
	c, err := loaded(t, []string{"--gateway-addr", "127.0.0.1:1", "--admin-key", "ours"}, env, "log-level = \"warn\"\n"+theirFile)
	if err != nil {
		t.Fatal(err)
	}
	if c.GatewayAddr != "127.0.0.1:1" || c.GatewayMetricsAddr != "127.0.0.1:2" || c.AdminKey != "ours" || c.LogLevel != "warn" || c.GatewayPermissive {
		t.Errorf("addresses %q %q, level %q, permissive %v", c.GatewayAddr, c.GatewayMetricsAddr, c.LogLevel, c.GatewayPermissive)
	}
	if r := c.gateway.rate; r.PerSecond != 1 || r.Burst != 7 {
		t.Errorf("the environment does not win over the file: %+v", r)
	}
	if !slices.Contains(c.gateway.ignored, "tenant_secrets.public.schema") {
		t.Errorf("ignored %q", c.gateway.ignored)
	}
}

func TestHalfAnAddressIsCompleted(t *testing.T) {
	for _, tc := range []struct{ file, addr, metrics string }{
		{"[server]\nport = 80\n", "127.0.0.1:80", "127.0.0.1:9094"},
		{"[server]\nhost = \"::1\"\n", "[::1]:8080", "[::1]:9094"},
		{"[gateway.server]\nport = 1\n[server]\nport = 2\n", "127.0.0.1:1", "127.0.0.1:9094"},
		{"[metrics]\nport = 1\n", "", "127.0.0.1:1"},
		{"gateway-addr = \"127.0.0.1:5\"\ngateway-metrics-addr = \"\"\n", "127.0.0.1:5", ""},
		{"", "", ""},
	} {
		c, err := loaded(t, nil, nil, tc.file)
		if err != nil {
			t.Fatalf("%s: %v", tc.file, err)
		}
		if metrics, _ := c.gatewayMetricsAddr(); c.GatewayAddr != tc.addr || metrics != tc.metrics {
			t.Errorf("%s: %q and %q, want %q and %q", tc.file, c.GatewayAddr, metrics, tc.addr, tc.metrics)
		}
	}
}

func TestDevelopmentTakesPlaceholders(t *testing.T) {
	file := "[user_auth]\njwt_secret = \"change_me\"\n[admin_secret]\nsecret = \"\"\napi_key_auth_enabled = false\n"
	c, err := loaded(t, []string{"--dev-mode"}, nil, file)
	if err != nil || c.AdminKey != "" || !c.gateway.authOff {
		t.Errorf("admin key %q, keys off %v, %v", c.AdminKey, c.gateway.authOff, err)
	}
}

func TestOnlyTheGatewayServiceHasADrainDelay(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want time.Duration
	}{
		{nil, time.Second}, {[]string{"--services", "decision"}, 0}, {[]string{"--services", "decision", "--drain-delay", "2s"}, 2 * time.Second},
		{[]string{"--drain-delay", "0"}, 0},
	} {
		c, err := loaded(t, tc.args, nil, "")
		if err != nil || c.drain() != tc.want {
			t.Errorf("%q: %v, want %v; %v", tc.args, c.drain(), tc.want, err)
		}
	}
}

func FuzzConfigurationOfTheGatewayAPI(f *testing.F) {
	f.Add(theirFile, "LIMIT__DURATION", "5")
	f.Add("server = 3", "SERVER__HOST__X", "y")
	f.Add("[gateway]\nserver = [1]", "__", "")
	f.Fuzz(func(t *testing.T, file, name, value string) {
		names := map[string]any{}
		if toml.Unmarshal([]byte(file), &names) != nil {
			return
		}
		theirs := foreign{}
		theirs.adopt(names)
		theirs.adoptVariables(environment{foreignPrefix + name: value})
		c := defaults()
		if err := c.applyForeign(theirs); err == nil && c.gateway.rate != nil && !(c.gateway.rate.PerSecond > 0) {
			t.Errorf("a rate of %v was taken", c.gateway.rate)
		}
	})
}
