package bench

import (
	_ "charm.land/fantasy"
	_ "github.com/ringi-dev/ringi/engine"
)
