package store

// rowsPerInsert is how many rows one statement inserts; see Dialect.Insert.
const rowsPerInsert = 32

// Insert inserts many rows into one table, 32 to a statement and the rest one by one.
type Insert struct{ one, many string }

// NewInsert returns an Insert into columns of table.
func NewInsert(d Dialect, table string, columns ...string) Insert {
	return Insert{one: d.Insert(table, columns, 1), many: d.Insert(table, columns, rowsPerInsert)}
}

// Rows inserts n rows; bind binds the columns of row i, counted from 0, in order.
func (in Insert) Rows(tx *Tx, n int, bind func(s *Stmt, i int)) error {
	i := 0
	for _, step := range []struct {
		text string
		rows int
	}{{in.many, rowsPerInsert}, {in.one, 1}} {
		if n-i < step.rows {
			continue
		}
		s := tx.Stmt(step.text)
		for ; n-i >= step.rows; i += step.rows {
			for row := range step.rows {
				bind(s, i+row)
			}
			if s.Again() != nil {
				break
			}
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}
