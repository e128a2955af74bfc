-- SPDX-License-Identifier: Apache-2.0
-- builds that opened a file, with how many commands did
-- FILE: path as the fleet has it, relative to the source root: see files-like
SELECT b.project, b.build, b.time, COUNT(DISTINCT o.execution) AS commands,
       MAX(f.sha256) AS sha256, MAX(f.package) AS package
FROM opens o
JOIN builds b ON b.build = o.build
LEFT JOIN files f ON f.build = o.build AND f.path = o.path
WHERE o.path = :file
GROUP BY b.project, b.build, b.time
ORDER BY b.project, b.time, b.build
