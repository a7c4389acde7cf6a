package gateway

import (
	"sync"
	"time"
)

// endingsMost bounds the sessions that are denied one by one. When it is reached, a logout ends all sessions of its user
// instead, so that the list grows by users, not by logins.
const endingsMost = 100_000

// Ending says that sessions are over before their time. It is kept until the last of them would have ended by itself.
type Ending struct {
	Key    string // "session/ID", "user/ID" or "merchant/ID"
	Before int64  // Unix seconds: of a user or a merchant, the sessions made before this are over
	Except string // of a user, the one session that is not
	Until  int64  // Unix seconds: after this the ending means nothing
}

// endings is the deny list in memory.
type endings struct {
	mu    sync.RWMutex // guards both; held for look-ups, and for a sweep of all once a minute
	over  map[string]Ending
	swept int64 // Unix seconds
}

func (e *endings) open() { e.over = map[string]Ending{} }

// covers reports whether the session is over.
func (e *endings) covers(s *Session) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if len(e.over) == 0 {
		return false
	}
	if _, there := e.over["session/"+s.ID]; there {
		return true
	}
	issued := s.Issued.Unix()
	if cut, there := e.over["user/"+s.UserID]; there && issued < cut.Before && cut.Except != s.ID {
		return true
	}
	cut, there := e.over["merchant/"+string(s.Merchant)]
	return there && issued < cut.Before
}

// after returns the time from which a session made at now must count as made, so that it is not among those that ended in
// this very second with the user's password or with an earlier merchant of that name.
func (e *endings) after(s *Session, now time.Time) time.Time {
	e.mu.RLock()
	defer e.mu.RUnlock()
	made := now.Unix()
	for _, key := range [...]string{"user/" + s.UserID, "merchant/" + string(s.Merchant)} {
		made = max(made, e.over[key].Before)
	}
	return time.Unix(made, 0)
}

// one is the ending of one session.
func (e *endings) one(s *Session) Ending {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if len(e.over) < endingsMost {
		return Ending{Key: "session/" + s.ID, Until: s.Expires.Unix()}
	}
	return Ending{Key: "user/" + s.UserID, Before: s.Issued.Unix() + 1, Until: s.Expires.Unix()}
}

// add puts an ending into effect.
func (e *endings) add(one Ending, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Unix()-e.swept >= 60 {
		e.swept = now.Unix()
		for key, old := range e.over {
			if old.Until < now.Unix() {
				delete(e.over, key)
			}
		}
	}
	e.over[one.Key] = e.over[one.Key].with(one)
}

// with is what two endings under one key come to: the later one counts, and the exception of an earlier one that reaches
// further is over now.
func (e Ending) with(next Ending) Ending {
	next.Until = max(next.Until, e.Until)
	if next.Before < e.Before {
		next.Before, next.Except = e.Before, ""
	}
	return next
}

// endOfUser ends what a user has open, except one session; life is how long a session may last.
func endOfUser(user, except string, now time.Time, life time.Duration) Ending {
	return Ending{Key: "user/" + user, Before: now.Unix() + 1, Except: except, Until: now.Add(life).Unix() + 1}
}

// endOfMerchant ends the sessions at a merchant that is no more, so that they do not open one that takes its name later.
func endOfMerchant(m MerchantID, now time.Time, life time.Duration) Ending {
	return Ending{Key: "merchant/" + string(m), Before: now.Unix() + 1, Until: now.Add(life).Unix() + 1}
}
