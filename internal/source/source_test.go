package source

import "testing"

// TestBytes: one byte is one choice, two where one is not enough, and after the end all is 0.
func TestBytes(t *testing.T) {
	b := NewBytes([]byte{3, 9, 255, 1, 2, 1, 2, 3, 4, 7})
	for i, c := range []struct{ n, want int }{{1, 0}, {4, 3}, {4, 1}, {256, 255}, {257, 258 % 257}} {
		if got := b.IntN(c.n); got != c.want {
			t.Errorf("number %d below %d is %d, want %d", i, c.n, got, c.want)
		}
	}
	if got := b.Uint32(); got != 0x01020304 || b.Over() {
		t.Errorf("%#x, over: %v", got, b.Over())
	}
	if got := b.IntN(8); got != 7 || !b.Over() {
		t.Errorf("the last is %d, over: %v", got, b.Over())
	}
	if b.IntN(100) != 0 || b.Uint32() != 0 {
		t.Error("there is something behind the end")
	}
}

// TestSeed: the same seed and use give the same numbers.
func TestSeed(t *testing.T) {
	a, b, c, d := Seed(1, 2), Seed(1, 2), Seed(1, 3), Seed(2, 2)
	if x := a.Uint32(); x != b.Uint32() || x == c.Uint32() || x == d.Uint32() {
		t.Error("not by seed and use")
	}
}
