-- SPDX-License-Identifier: Apache-2.0
-- steps that take the most time, over all builds
SELECT b.project, e.cwd, e.step, COUNT(DISTINCT e.build) AS builds,
       ROUND(SUM(e.elapsed_ns) / 1e9, 3) AS seconds, ROUND(AVG(e.elapsed_ns) / 1e9, 4) AS mean_s
FROM executions e
JOIN builds b ON b.build = e.build
WHERE NOT EXISTS (SELECT 1 FROM executions k WHERE k.build = e.build AND k.parent = e.execution)
GROUP BY b.project, e.cwd, e.step
ORDER BY seconds DESC, b.project, e.cwd, e.step
LIMIT 50
