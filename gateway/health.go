package gateway

import "context"

// HealthView reads the row of a probe.
type HealthView interface {
	Probed(id int64) (bool, error)
}

// HealthTx writes and removes it.
type HealthTx interface {
	PutProbe(id int64) error
	DropProbe(id int64) error
}

// Probe is what the store did when it was asked to work; true is well.
type Probe struct {
	Connection, Read, Write, Delete bool
}

// Probe makes the store read, write and remove a row, each synced, and says what worked. It costs two writes, so whoever lets
// strangers ask bounds how often.
func (s *Service) Probe(ctx context.Context) (p Probe) {
	id := int64(s.options.Entropy() >> 1)
	p.Connection = s.storage.Read(ctx, func(View) error { return nil }) == nil
	p.Write = s.write(ctx, func(tx Tx) error { return tx.PutProbe(id) }, nil) == nil
	p.Read = s.storage.Read(ctx, func(v View) error {
		found, err := v.Probed(id)
		if err == nil && found != p.Write {
			return notFound("Probe", "the probe")
		}
		return err
	}) == nil
	p.Delete = p.Write && s.write(ctx, func(tx Tx) error { return tx.DropProbe(id) }, nil) == nil
	return p
}
