CREATE TABLE ga_artifacts (
    id BIGSERIAL NOT NULL,
    app VARCHAR COLLATE "C" NOT NULL,
    user_id VARCHAR COLLATE "C" NOT NULL,
    session VARCHAR COLLATE "C" NOT NULL,
    name VARCHAR COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    mime_type VARCHAR NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (app, user_id, session, name, version)
);
CREATE TABLE ga_events (
    place BIGINT NOT NULL,
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
    session BIGINT NOT NULL,
    filter_key VARCHAR COLLATE "C" NOT NULL,
    owner VARCHAR NOT NULL,
    until FLOAT NOT NULL,
    PRIMARY KEY (session, filter_key)
);
CREATE TABLE ga_memories (
    app VARCHAR COLLATE "C" NOT NULL,
    user_id VARCHAR COLLATE "C" NOT NULL,
    id VARCHAR COLLATE "C" NOT NULL,
    body VARCHAR NOT NULL,
    created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL,
    PRIMARY KEY (app, user_id, id)
);
CREATE TABLE ga_search (
    place BIGINT NOT NULL,
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
    id BIGSERIAL NOT NULL,
    app VARCHAR COLLATE "C" NOT NULL,
    user_id VARCHAR COLLATE "C" NOT NULL,
    name VARCHAR COLLATE "C" NOT NULL,
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
    app VARCHAR COLLATE "C" NOT NULL,
    user_id VARCHAR COLLATE "C" NOT NULL,
    session VARCHAR COLLATE "C" NOT NULL,
    key VARCHAR COLLATE "C" NOT NULL,
    value VARCHAR NOT NULL,
    expires FLOAT,
    PRIMARY KEY (app, user_id, session, key)
);
CREATE TABLE ga_summaries (
    session BIGINT NOT NULL,
    filter_key VARCHAR COLLATE "C" NOT NULL,
    body VARCHAR NOT NULL,
    PRIMARY KEY (session, filter_key)
);
CREATE TABLE ga_tracks (
    place BIGINT NOT NULL,
    track VARCHAR COLLATE "C" NOT NULL,
    at FLOAT NOT NULL,
    body VARCHAR NOT NULL,
    PRIMARY KEY (place)
);
CREATE TABLE ga_vectors (
    place BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    vector BYTEA NOT NULL,
    PRIMARY KEY (place)
);
CREATE TABLE ga_services_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT ga_services_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO ga_services_version (version_num) VALUES ('0001');
CREATE FUNCTION ga_tokens(words text, marks text, scope text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE COST 500 AS $$ BEGIN RETURN string_to_array(substr(replace(words || marks, ' ', ' ' || scope), 2), ' '); END $$;
CREATE INDEX ga_search_words ON ga_search USING gin ((ga_tokens(words, marks, scope))) WITH (fastupdate = on, gin_pending_list_limit = 128);
