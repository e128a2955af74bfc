-- SPDX-License-Identifier: Apache-2.0
-- linked modules that files of a package went into, with its versions
-- PACKAGE: name of the package, with %: libc6%
SELECT b.project, c.module, f.package, COUNT(DISTINCT c.path) AS files,
       COUNT(DISTINCT b.build) AS builds, MAX(b.time) AS last
FROM files f
JOIN closures c ON c.build = f.build AND c.path = f.path
JOIN builds b ON b.build = f.build
WHERE REPLACE(f.package, '%2B', '+') LIKE 'pkg:%/' || :package || '@%'
GROUP BY b.project, c.module, f.package
ORDER BY b.project, c.module, f.package
