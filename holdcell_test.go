package cuda

import "testing"

// TestHolder: the cells of contexts that may go before the Driver are the primary context's, for the spinner may look at a cell at any
// time.
func TestHolder(t *testing.T) {
	primary := refusingStream(t, &refusing{}).ctx
	for name, c := range map[string]*Context{
		"primary": primary,
		"own":     {drv: primary.drv, own: true},
		"green":   {drv: primary.drv, green: new(resource)},
	} {
		if c.holder() != primary {
			t.Errorf("%s: the cells are not the primary context's", name)
		}
	}
}
