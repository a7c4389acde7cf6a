package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"

	"holdfast/ident"
)

//go:embed static
var staticFiles embed.FS

// asset is one file that pages refer to.
type asset struct {
	kind, tag string // media type and entity tag
	body      []byte
}

// kinds are the media types of what is embedded; a file of another kind is a mistake.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// loadAssets reads the embedded files.
func loadAssets() map[string]asset {
	all := map[string]asset{}
	err := fs.WalkDir(staticFiles, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := staticFiles.ReadFile(name)
		if err != nil {
			return err
		}
		kind, known := kinds[path.Ext(name)]
		if !known {
			panic("console: no media type for " + name)
		}
		sum := sha256.Sum256(body)
		all[path.Base(name)] = asset{kind: kind, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: body}
		return nil
	})
	if err != nil {
		panic("console: " + err.Error())
	}
	return all
}

// Static answers with an embedded file; the one parameter is its name.
func (c *Console) Static(w http.ResponseWriter, r *http.Request, call *ident.Call) {
	h := w.Header()
	protect(h)
	a, found := c.static[call.Params[0]]
	if !found {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	h.Set("ETag", a.tag)
	h.Set("Cache-Control", "no-cache") // ask again, so that a new version is seen at once; the tag makes that cheap
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.kind)
	_, _ = w.Write(a.body)
}
