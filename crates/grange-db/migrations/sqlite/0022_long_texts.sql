-- Sets of repositories and paths of files have lengths of their own. Rows of indexes here have, too; on PostgreSQL they hold
-- digests of such text.
SELECT 1;
