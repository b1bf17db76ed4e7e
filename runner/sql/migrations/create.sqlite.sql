CREATE TABLE ga_artifacts (
    id INTEGER NOT NULL,
    app VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    session VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    version BIGINT NOT NULL,
    mime_type VARCHAR NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (app, user_id, session, name, version)
);
CREATE TABLE ga_events (
    place INTEGER NOT NULL,
    session BIGINT NOT NULL,
    said BIGINT NOT NULL,
    id VARCHAR NOT NULL,
    at FLOAT NOT NULL,
    shown BIGINT NOT NULL,
    asked INTEGER NOT NULL,
    body VARCHAR NOT NULL,
    PRIMARY KEY (place),
    UNIQUE (session, id)
);
CREATE INDEX ga_events_asked ON ga_events (place) WHERE asked = 1;
CREATE TABLE ga_leases (
    session INTEGER NOT NULL,
    filter_key VARCHAR NOT NULL,
    owner VARCHAR NOT NULL,
    until FLOAT NOT NULL,
    PRIMARY KEY (session, filter_key)
) WITHOUT ROWID;
CREATE TABLE ga_memories (
    app VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL,
    PRIMARY KEY (app, user_id, id)
) WITHOUT ROWID;
CREATE TABLE ga_search (
    place INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    scope VARCHAR NOT NULL,
    role VARCHAR NOT NULL,
    filter_key VARCHAR NOT NULL,
    speakers VARCHAR NOT NULL,
    size BIGINT NOT NULL,
    words VARCHAR NOT NULL,
    marks VARCHAR NOT NULL,
    PRIMARY KEY (place)
);
CREATE TABLE ga_sessions (
    id INTEGER NOT NULL,
    app VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    seq BIGINT NOT NULL,
    shown BIGINT NOT NULL,
    said BIGINT NOT NULL,
    words BIGINT NOT NULL,
    created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL,
    expires FLOAT,
    PRIMARY KEY (id),
    UNIQUE (app, user_id, name)
);
CREATE TABLE ga_states (
    app VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    session VARCHAR NOT NULL,
    "key" VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    expires FLOAT,
    PRIMARY KEY (app, user_id, session, "key")
) WITHOUT ROWID;
CREATE TABLE ga_summaries (
    session INTEGER NOT NULL,
    filter_key VARCHAR NOT NULL,
    body VARCHAR NOT NULL,
    PRIMARY KEY (session, filter_key)
) WITHOUT ROWID;
CREATE TABLE ga_tracks (
    place INTEGER NOT NULL,
    track VARCHAR NOT NULL,
    at FLOAT NOT NULL,
    body VARCHAR NOT NULL,
    PRIMARY KEY (place)
);
CREATE TABLE ga_vectors (
    place INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (place)
);
CREATE TABLE ga_services_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT ga_services_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO ga_services_version (version_num) VALUES ('0001');
CREATE VIRTUAL TABLE ga_search_words USING fts5 (words, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '=@'");
CREATE TRIGGER ga_search_insert AFTER INSERT ON ga_search BEGIN INSERT INTO ga_search_words(rowid, words) VALUES (new.place, replace(new.words || new.marks, ' ', ' ' || new.scope)); END;
CREATE TRIGGER ga_search_delete AFTER DELETE ON ga_search BEGIN INSERT INTO ga_search_words(ga_search_words, rowid, words) VALUES ('delete', old.place, replace(old.words || old.marks, ' ', ' ' || old.scope)); END;
