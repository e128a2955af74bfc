-- SPDX-License-Identifier: Apache-2.0
-- steps that take longer since a commit, beyond their noise (3 deviations of the means)
-- COMMIT: a commit of the label `commit`, or its first digits
WITH since AS (
  SELECT project, MIN(time) AS time FROM builds
  WHERE labels['commit'] LIKE :commit || '%' GROUP BY project
), runs AS (
  SELECT b.project, e.cwd, e.step, e.build, CASE WHEN b.time >= s.time THEN 1 ELSE 0 END AS side,
         SUM(e.elapsed_ns) / 1e9 AS seconds
  FROM executions e
  JOIN builds b ON b.build = e.build
  JOIN since s ON s.project = b.project
  GROUP BY b.project, e.cwd, e.step, e.build, b.time, s.time
), sides AS (
  SELECT project, cwd, step, SUM(1 - side) AS n0, SUM(side) AS n1,
         AVG(CASE WHEN side = 0 THEN seconds END) AS m0,
         AVG(CASE WHEN side = 1 THEN seconds END) AS m1,
         COALESCE(VAR_SAMP(CASE WHEN side = 0 THEN seconds END), 0) AS v0,
         COALESCE(VAR_SAMP(CASE WHEN side = 1 THEN seconds END), 0) AS v1
  FROM runs GROUP BY project, cwd, step
), noise AS (
  SELECT project, cwd, step, n0, n1, m0, m1,
         3 * SQRT((v0 * (n0 - 1) + v1 * (n1 - 1)) / (n0 + n1 - 2) * (1.0 / n0 + 1.0 / n1)) AS noise
  FROM sides WHERE n0 > 0 AND n1 > 0 AND n0 + n1 > 2
)
SELECT project, cwd, step, ROUND(m0, 4) AS before_s, ROUND(m1, 4) AS after_s,
       ROUND(m1 - m0, 4) AS slower_s, ROUND(noise, 4) AS noise_s, n0 AS builds_before,
       n1 AS builds_after
FROM noise
WHERE m1 - m0 > noise AND m1 - m0 > 0.001
ORDER BY m1 - m0 DESC, project, cwd, step
LIMIT 50
