package taetest

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed-a893640b/tae/client"
)

// What nodes log, at the finest level and when things go wrong, holds no plaintext,
// associated data, passphrase or stored key.
func TestLogsHoldNoSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(zapcore.AddSync(&log)), zap.DebugLevel)
		c := NewCluster(t, 3, 2, WithLogger(zap.New(core)), WithClient("app", Rights{Encrypt: true, Decrypt: true}), WithClient("none", Rights{}))
		k := c.Client("app").Keyset("default")
		object, err := k.Encrypt(t.Context(), []byte("sentinel-plaintext"), []byte("sentinel-aad"))
		if err != nil {
			t.Fatal(err)
		}
		c.Network.Lie(2, func(_, answer []byte) []byte { answer[len(answer)-1] ^= 1; return answer })
		var said []error
		for range 3 {
			if _, err := k.Decrypt(t.Context(), object, []byte("sentinel-aad")); err != nil {
				t.Fatal(err)
			}
			_, err := k.Decrypt(t.Context(), object, []byte("sentinel-other"))
			said = append(said, err)
			_, err = c.Client("none").Keyset("default").Decrypt(t.Context(), object, []byte("sentinel-aad"))
			said = append(said, err)
		}
		c.Stop(1)
		c.Start(1)
		text := log.String()
		for _, err := range said {
			text += err.Error()
		}
		if !strings.Contains(text, "key generation") || !strings.Contains(text, client.ErrDenied.Error()) {
			t.Fatal("nothing was logged: the test looks at the wrong place")
		}
		secrets := []string{"sentinel", string(passphrase)}
		for i := 1; i <= 3; i++ {
			secrets = append(secrets, hex.EncodeToString(c.nodes[i].key.Seed()))
		}
		secrets = append(secrets, hex.EncodeToString([]byte("sentinel")))
		for _, s := range secrets {
			if strings.Contains(strings.ReplaceAll(text, `"software":"taetest"`, ""), s) {
				t.Errorf("a secret is in the log or in an error")
			}
		}
	})
}
