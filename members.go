package ringi

import "context"

// Members knows the teams of the people whom it knows. access.Directory is one.
type Members interface {
	// TeamsOf returns the teams that a principal's id is in now. known is false
	// for somebody of whom nothing is known here: what authenticated him then
	// says his teams. Who is known and may not log in is in none. An error says
	// that it cannot be told now; whoever asks then lets nobody decide by a team.
	TeamsOf(ctx context.Context, id string) (teams []string, known bool, err error)
}
