-- The claim under which a folder waits for the archive. A job is not crawled again while files of its last claim wait; those
-- of earlier harvesters hold nobody up.
ALTER TABLE waiting_deposits ADD COLUMN claim_token BIGINT;
UPDATE waiting_deposits SET claim_token =
    (SELECT j.lease_token FROM jobs j WHERE j.id = waiting_deposits.job_id AND j.harvester = waiting_deposits.harvester);

-- The orders that people gave to the running crawl of a job. A harvester that takes the job over follows them.
CREATE TABLE job_orders (
    job_id BIGINT NOT NULL PRIMARY KEY REFERENCES jobs (id),
    body   TEXT NOT NULL
);
