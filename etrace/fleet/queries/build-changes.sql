-- SPDX-License-Identifier: Apache-2.0
-- files that a build read and that differ from those of the build before it: by hash, else by size
-- BUILD: id of the build
WITH own AS (
  SELECT build, project, time FROM builds WHERE build = :build
), previous AS (
  SELECT MAX_BY(b.build, CAST(b.time AS STRING) || b.build) AS build
  FROM builds b
  JOIN own o ON o.project = b.project AND b.time < o.time
), here AS (
  SELECT f.* FROM files f JOIN own o ON o.build = f.build WHERE NOT f.is_written
), there AS (
  SELECT f.* FROM files f JOIN previous p ON p.build = f.build WHERE NOT f.is_written
)
SELECT COALESCE(h.path, t.path) AS path,
       CASE WHEN t.path IS NULL THEN 'new' WHEN h.path IS NULL THEN 'gone' ELSE 'changed' END
         AS change,
       COALESCE(h.kind, t.kind) AS kind, t.size_bytes AS size_before, h.size_bytes AS size_after,
       t.package AS package_before, h.package AS package_after, p.build AS build_before
FROM here h
FULL OUTER JOIN there t ON t.path = h.path
CROSS JOIN previous p
WHERE p.build IS NOT NULL
  AND (h.path IS NULL OR t.path IS NULL
       OR COALESCE(h.sha256 <> t.sha256, h.size_bytes <> t.size_bytes, false))
ORDER BY path
LIMIT 200
