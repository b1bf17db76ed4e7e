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
    id VARCHAR NOT NULL,
    at FLOAT NOT NULL,
    shown INTEGER NOT NULL,
    asked INTEGER NOT NULL,
    body VARCHAR NOT NULL,
    PRIMARY KEY (place),
    UNIQUE (session, id)
);
CREATE INDEX ga_events_asked ON ga_events (place) WHERE asked = 1;
CREATE TABLE ga_memories (
    app VARCHAR COLLATE "C" NOT NULL,
    user_id VARCHAR COLLATE "C" NOT NULL,
    id VARCHAR COLLATE "C" NOT NULL,
    body VARCHAR NOT NULL,
    created_at FLOAT NOT NULL,
    updated_at FLOAT NOT NULL,
    PRIMARY KEY (app, user_id, id)
);
CREATE TABLE ga_sessions (
    id BIGSERIAL NOT NULL,
    app VARCHAR COLLATE "C" NOT NULL,
    user_id VARCHAR COLLATE "C" NOT NULL,
    name VARCHAR COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
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
CREATE TABLE ga_services_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT ga_services_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO ga_services_version (version_num) VALUES ('0001');
