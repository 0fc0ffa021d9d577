UPDATE run SET
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
