package strictjson

import "hash/maphash"

// span is a member name: a part of the text, or of the scratch when it was decoded.
type span struct {
	start, end uint32
	decoded    bool
}

// keyList is a list of names whose first ones need no memory of their own: a slice over an array in the same struct would
// force both onto the heap.
type keyList struct {
	count int
	near  [32]span
	far   []span
}

func (l *keyList) at(i int) span {
	if i < len(l.near) {
		return l.near[i]
	}
	return l.far[i-len(l.near)]
}

func (l *keyList) push(s span) {
	if l.count < len(l.near) {
		l.near[l.count] = s
	} else {
		l.far = append(l.far, s)
	}
	l.count++
}

// cut forgets all but the first n names.
func (l *keyList) cut(n int) {
	l.count = n
	l.far = l.far[:max(0, min(len(l.far), n-len(l.near)))]
}

// members is the set of names seen so far in one object. The names themselves are v.keys from first on.
type members struct {
	first int // index of the object's first name in the validator's list
	text  int // length of the scratch when the object was opened
	seed  maphash.Seed
	slots []uint32 // open addressing by hash: index in v.keys, plus one; empty up to smallObject names
}

// smallObject is how many names are compared one by one; a longer object gets a hash set with a secret seed, so that
// neither many nor chosen names cost more than linear time.
const smallObject = 16

// known adds key to the object's names and reports whether it was there already.
func (v *validator) known(m *members, key span) bool {
	count := v.keys.count - m.first
	if count < smallObject {
		text := v.name(key)
		for i := m.first; i < v.keys.count; i++ {
			if string(v.name(v.keys.at(i))) == string(text) {
				return true
			}
		}
		v.keys.push(key)
		return false
	}
	if (count+1)*2 > len(m.slots) {
		v.rehash(m, count)
	}
	v.keys.push(key)
	return v.claim(m, v.keys.count-1)
}

// claim enters the name at index into the hash set and reports whether an equal one was there.
func (v *validator) claim(m *members, index int) bool {
	text := v.name(v.keys.at(index))
	mask := uint64(len(m.slots) - 1)
	for at := maphash.Bytes(m.seed, text) & mask; ; at = (at + 1) & mask {
		taken := m.slots[at]
		if taken == 0 {
			m.slots[at] = uint32(index + 1)
			return false
		}
		if string(v.name(v.keys.at(int(taken)-1))) == string(text) {
			return true
		}
	}
}

// rehash makes room for at least twice the names that m holds.
func (v *validator) rehash(m *members, count int) {
	if m.slots == nil {
		m.seed = maphash.MakeSeed()
	}
	size := 4 * smallObject
	for size < 4*count {
		size *= 2
	}
	m.slots = make([]uint32, size)
	for i := range count {
		v.claim(m, m.first+i)
	}
}

func (v *validator) name(s span) []byte {
	if s.decoded {
		return v.scratch[s.start:s.end]
	}
	return v.data[s.start:s.end]
}
