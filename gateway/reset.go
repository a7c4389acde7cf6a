package gateway

import "context"

// ScoreReset is what a reset of scores removed.
type ScoreReset struct {
	Windows   int // of all gateways
	Overrides int // rows of the success-rate config that nobody wrote by hand
}

// ResetScores forgets every window of a merchant and the rows of its success-rate config that the autopilot wrote; rows
// written by hand stay. NotFound when there is no such merchant.
func (s *Service) ResetScores(ctx context.Context, id MerchantID) (ScoreReset, error) {
	const op = "ResetScores"
	m, err := s.known(ctx, op, id)
	if err != nil {
		return ScoreReset{}, err
	}
	removed := 0
	err = s.reconfigure(ctx, id, func(tx Tx, m MerchantRow) error {
		var data SuccessData
		document, err := tx.Setting(m.Key, settingSuccess)
		if err != nil || document == nil {
			return err
		}
		if err := unpack(op, document, &data); err != nil {
			return err
		}
		if removed = data.dropAutopilot(); removed == 0 {
			return nil
		}
		if document, err = pack(op, &data); err != nil {
			return err
		}
		return tx.SetSetting(m.Key, settingSuccess, document)
	})
	if err != nil {
		return ScoreReset{}, err
	}
	windows, err := s.resetScores(ctx, m)
	return ScoreReset{Windows: windows, Overrides: removed}, err
}
