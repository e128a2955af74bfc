-- SPDX-License-Identifier: Apache-2.0
-- linked modules that a file went into, by project
-- FILE: path as the fleet has it, relative to the source root: see files-like
SELECT b.project, c.module, COUNT(*) AS builds, MIN(b.time) AS first, MAX(b.time) AS last,
       MAX_BY(b.build, CAST(b.time AS STRING) || b.build) AS last_build
FROM closures c
JOIN builds b ON b.build = c.build
WHERE c.path = :file AND c.kind <> 'program'
GROUP BY b.project, c.module
ORDER BY b.project, c.module
