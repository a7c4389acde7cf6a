package lab

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"holdfast/fault"
)

// Null runs the yardstick until ctx is done: a bare net/http handler that reads the whole body and answers a constant of
// size bytes. It logs nothing, counts nothing and keeps Go's default settings.
func Null(ctx context.Context, addr string, size int) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fault.Wrap("lab.Null", fault.Unavailable, err, "cannot listen on "+addr)
	}
	server := &http.Server{Handler: nullHandler(size), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); ctx.Err() == nil {
		return fault.Wrap("lab.Null", fault.Internal, err, "the null server ended")
	}
	return nil
}

func nullHandler(size int) http.Handler {
	constant := make([]byte, size)
	for i := range constant {
		constant[i] = ' ' // white space is the smallest JSON that has any size
	}
	length := []string{strconv.Itoa(size)}
	kind := []string{"application/json"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		h := w.Header()
		h["Content-Type"], h["Content-Length"] = kind, length
		_, _ = w.Write(constant) // the caller is gone if this fails
	})
}
