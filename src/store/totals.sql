UPDATE run SET
    revisions = (
        SELECT count(DISTINCT json_extract(body, '$.iteration')) FROM event
        WHERE event.run = run.n AND json_extract(body, '$.event') = 'phase'
            AND json_extract(body, '$.phase') = 'revise'),
    helped = (
        SELECT count(DISTINCT json_extract(decided.body, '$.iteration')) FROM event AS decided
        WHERE decided.run = run.n AND json_extract(decided.body, '$.event') = 'decision'
            AND json_extract(decided.body, '$.choice') = 'accept'
            AND json_extract(decided.body, '$.iteration') IN (
                SELECT json_extract(body, '$.iteration') FROM event
                WHERE event.run = run.n AND json_extract(body, '$.event') = 'phase'
                    AND json_extract(body, '$.phase') = 'revise')),
    first_score = (
        SELECT json_extract(body, '$.evaluation.overall_score') FROM event
        WHERE event.run = run.n AND json_extract(body, '$.event') = 'evaluation'
            AND json_extract(body, '$.iteration') = 1
        ORDER BY seq DESC LIMIT 1),
    tokens = (
        SELECT sum(json_extract(body, '$.usage.total')) FROM event
        WHERE event.run = run.n AND json_extract(body, '$.event') = 'call'),
    cost = (
        SELECT CASE WHEN count(*) = count(json_extract(body, '$.cost'))
            THEN sum(json_extract(body, '$.cost')) END FROM event
        WHERE event.run = run.n AND json_extract(body, '$.event') = 'call')
