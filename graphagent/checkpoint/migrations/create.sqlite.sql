CREATE TABLE ga_activations (
    base INTEGER NOT NULL,
    position INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (base, position)
) WITHOUT ROWID;
CREATE TABLE ga_effects (
    base INTEGER NOT NULL,
    position INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    ordinal INTEGER NOT NULL,
    committed INTEGER NOT NULL,
    result BLOB,
    PRIMARY KEY (base, position, name, ordinal)
) WITHOUT ROWID;
CREATE TABLE ga_frames (
    id INTEGER NOT NULL,
    lineage BIGINT NOT NULL,
    namespace VARCHAR NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (lineage, namespace)
);
CREATE TABLE ga_graphs (
    fingerprint VARCHAR NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (fingerprint)
) WITHOUT ROWID;
CREATE TABLE ga_lineages (
    id INTEGER NOT NULL,
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
    id INTEGER NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE ga_rows (
    id INTEGER NOT NULL,
    run BIGINT NOT NULL,
    source INTEGER NOT NULL,
    step INTEGER NOT NULL,
    base INTEGER,
    snap INTEGER NOT NULL,
    root INTEGER NOT NULL,
    pointer INTEGER,
    parent INTEGER,
    created_at FLOAT NOT NULL,
    nodes BLOB NOT NULL,
    marking BLOB NOT NULL,
    delta BLOB,
    lists BLOB,
    extra BLOB,
    PRIMARY KEY (id)
);
CREATE INDEX ga_rows_listed ON ga_rows (id) WHERE lists IS NOT NULL;
CREATE TABLE ga_runs (
    id INTEGER NOT NULL,
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
