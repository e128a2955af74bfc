-- SPDX-License-Identifier: Apache-2.0
-- compilers by project, with the packages that they are of
SELECT b.project, c.compiler, c.language, f.package, COUNT(DISTINCT c.build) AS builds,
       COUNT(*) AS compilations, MAX(b.time) AS last
FROM compilations c
JOIN builds b ON b.build = c.build
LEFT JOIN files f ON f.build = c.build AND f.path = c.compiler
GROUP BY b.project, c.compiler, c.language, f.package
ORDER BY b.project, compilations DESC, c.compiler, c.language, f.package
