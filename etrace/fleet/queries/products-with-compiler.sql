-- SPDX-License-Identifier: Apache-2.0
-- linked modules that a program was run for: a compiler, linker or generator
-- PROGRAM: path of the program, or its name
SELECT b.project, c.module, c.path AS program, COUNT(*) AS builds, MIN(b.time) AS first,
       MAX(b.time) AS last, MAX_BY(b.build, CAST(b.time AS STRING) || b.build) AS last_build
FROM closures c
JOIN builds b ON b.build = c.build
WHERE c.kind = 'program' AND (c.path = :program OR c.path LIKE '%/' || :program)
GROUP BY b.project, c.module, c.path
ORDER BY b.project, c.module, c.path
