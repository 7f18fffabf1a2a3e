package exit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/seed-a893640b/tae/client"
	"github.com/seed-a893640b/tae/internal/config"
)

func TestCode(t *testing.T) {
	_, notFound := os.Open("/does/not/exist")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0}, {errors.New("x"), 1}, {With(Usage, errors.New("x")), 2}, {notFound, 3}, {client.ErrNotObject, 3},
		{fmt.Errorf("%w: x", config.ErrConfig), 4}, {&client.QuorumError{Kind: client.ErrQuorum}, 10}, {&client.QuorumError{Kind: client.ErrDenied}, 11},
		{fmt.Errorf("x: %w", client.ErrAuthentication), 12}, {client.ErrEpoch, 13}, {client.ErrUnknownKeyset, 13}, {client.ErrBusy, 14},
		{client.ErrVersion, 15}, {&client.DisputeError{Detail: errors.New("x")}, 16}, {context.Canceled, 130},
	} {
		if got := Code(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}
