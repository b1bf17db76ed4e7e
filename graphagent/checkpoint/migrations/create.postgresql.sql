CREATE TABLE ga_activations (
    base BIGINT NOT NULL,
    position INTEGER NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (base, position)
);
CREATE TABLE ga_effects (
    base BIGINT NOT NULL,
    position INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    ordinal INTEGER NOT NULL,
    committed INTEGER NOT NULL,
    result BYTEA,
    PRIMARY KEY (base, position, name, ordinal)
);
CREATE TABLE ga_frames (
    id BIGSERIAL NOT NULL,
    lineage BIGINT NOT NULL,
    namespace VARCHAR NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (lineage, namespace)
);
CREATE TABLE ga_graphs (
    fingerprint VARCHAR NOT NULL,
    document BYTEA NOT NULL,
    PRIMARY KEY (fingerprint)
);
CREATE TABLE ga_lineages (
    id BIGSERIAL NOT NULL,
    name VARCHAR NOT NULL,
    token BIGINT NOT NULL,
    run_id VARCHAR NOT NULL,
    owner VARCHAR,
    since FLOAT NOT NULL,
    expires FLOAT NOT NULL,
    cancel INTEGER NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (name)
);
CREATE TABLE ga_pins (
    id BIGINT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE ga_rows (
    id BIGINT NOT NULL,
    run BIGINT NOT NULL,
    source INTEGER NOT NULL,
    step INTEGER NOT NULL,
    base INTEGER,
    snap INTEGER NOT NULL,
    root INTEGER NOT NULL,
    pointer INTEGER,
    parent INTEGER,
    created_at FLOAT NOT NULL,
    nodes BYTEA NOT NULL,
    marking BYTEA NOT NULL,
    delta BYTEA,
    lists BYTEA,
    extra BYTEA,
    PRIMARY KEY (id)
);
CREATE INDEX ga_rows_listed ON ga_rows (id) WHERE lists IS NOT NULL;
CREATE TABLE ga_runs (
    id BIGSERIAL NOT NULL,
    lineage BIGINT NOT NULL,
    run_id VARCHAR NOT NULL,
    fingerprint VARCHAR NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (lineage, run_id, fingerprint)
);
CREATE TABLE ga_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT ga_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO ga_version (version_num) VALUES ('0002');
