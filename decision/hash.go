package decision

// The hashing of features: FNV-1a over bytes as they come, so that a name is never put together in memory, and the
// MurmurHash3 finaliser to pick the slot.
const (
	fnvBasis = 0xcbf29ce484222325
	fnvPrime = 0x100000001b3
)

func fnvByte(h uint64, b byte) uint64 { return (h ^ uint64(b)) * fnvPrime }

func fnvText[T string | []byte](h uint64, text T) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}

// fnvWord adds the eight little-endian bytes of w.
func fnvWord(h, w uint64) uint64 {
	h = (h ^ w&0xff) * fnvPrime
	h = (h ^ w>>8&0xff) * fnvPrime
	h = (h ^ w>>16&0xff) * fnvPrime
	h = (h ^ w>>24&0xff) * fnvPrime
	h = (h ^ w>>32&0xff) * fnvPrime
	h = (h ^ w>>40&0xff) * fnvPrime
	h = (h ^ w>>48&0xff) * fnvPrime
	return (h ^ w>>56) * fnvPrime
}

// namespaceState is the hash state after a namespace and its zero byte.
func namespaceState(namespace byte) uint64 { return fnvByte(fnvByte(fnvBasis, namespace), 0) }

// HashText returns the FNV-1a hash of text, which also sorts decisions into folds.
func HashText(text string) uint64 { return fnvText(fnvBasis, text) }

// Finalize is the MurmurHash3 64-bit finaliser: every bit of h changes every bit of the result.
func Finalize(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// slotOf returns the slot of a hash in a model of the given bits.
func slotOf(h uint64, bits int) uint32 { return uint32(Finalize(h) & (1<<bits - 1)) }
