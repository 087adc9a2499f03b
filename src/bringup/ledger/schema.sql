CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, name TEXT NOT NULL, target TEXT NOT NULL, engine TEXT NOT NULL, model TEXT,
    state TEXT NOT NULL, after TEXT, cause TEXT, class TEXT, started TEXT, ready_s REAL, document TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS runs_by_name ON runs (name, run);
CREATE TABLE IF NOT EXISTS attempts (
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE, attempt INTEGER NOT NULL, state TEXT NOT NULL,
    command TEXT NOT NULL, started TEXT, seconds REAL, PRIMARY KEY (run, attempt)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    run TEXT NOT NULL REFERENCES runs (run) ON DELETE CASCADE, seq INTEGER NOT NULL, attempt INTEGER, kind TEXT NOT NULL,
    at TEXT, t_s REAL, phase TEXT, document TEXT NOT NULL, PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outcomes (
    run TEXT PRIMARY KEY REFERENCES runs (run) ON DELETE CASCADE, state TEXT NOT NULL, after TEXT, class TEXT, cause TEXT,
    exit_code INTEGER, exit_signal TEXT, ended TEXT
) STRICT;
