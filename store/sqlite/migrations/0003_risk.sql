-- Requests the riskiest first. What was asked before has the highest: nobody
-- told (see termRisk in terms.go).
ALTER TABLE requests ADD COLUMN risk TEXT NOT NULL DEFAULT 'high';
CREATE INDEX requests_risk ON requests (space, state, risk, created_at, id, expires_at);
